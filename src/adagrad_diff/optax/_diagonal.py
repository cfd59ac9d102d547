"""Transformations that divide every entry by a weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from ..penalties import group_root


class DiagonalTransformation(optax.GradientTransformation):  # type: ignore[misc, unused-ignore]
    """A gradient transformation that divides by weights, and can tell them: what `proximal` needs to know.

    `proximal` knows the weights of this package's scalings and of optax's usual ones. This is for all others.

    Parameters
    ----------
    init, update
        As of every `optax.GradientTransformation`.
    weights : callable
        `weights(state)`, with the state that `update` returns, are the positive numbers by which it has just divided: a tree
        like the parameters, or a prefix of it (one number for all arrays), of arrays that broadcast against them. (For
        complex parameters, against their real and imaginary parts along one more axis at the end.)
    seen : callable, optional
        `seen(state)`, a tree like that of the weights, is False where there has been no gradient yet, and the weight says
        nothing: `proximal` leaves those coordinates alone. Without it, all weights are taken at their word.

    Examples
    --------
    A scaling of your own, by the cube root of an average of cubes, gets proximal steps:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import L1, DiagonalTransformation, proximal
    >>> init = lambda params: jax.tree.map(jnp.zeros_like, params)
    >>> weights = lambda state: jax.tree.map(lambda v: jnp.cbrt(v) + 1e-8, state)
    >>> def update(updates, state, params=None):
    ...     state = jax.tree.map(lambda g, v: 0.9 * v + 0.1 * abs(g) ** 3, updates, state)
    ...     return jax.tree.map(jnp.divide, updates, weights(state)), state
    >>> seen = lambda state: jax.tree.map(lambda v: v != 0, state)
    >>> optimizer = proximal(DiagonalTransformation(init, update, weights, seen), 0.1, L1(0.01))
    """

    weights: Callable[[Any], Any]
    seen: Callable[[Any], Any] | None

    def __new__(
        cls,
        init: Any,
        update: Any,
        weights: Callable[[Any], Any],
        seen: Callable[[Any], Any] | None = None,
    ) -> DiagonalTransformation:
        self: DiagonalTransformation = super().__new__(cls, init, update)
        self.weights, self.seen = weights, seen
        return self


def of_part(chain: Any, place: Any, scaling: DiagonalTransformation) -> DiagonalTransformation:
    """A chain with the weights of one of its parts, the state of which is at that place."""
    seen = None if scaling.seen is None else lambda state: scaling.seen(state[place])  # type: ignore[misc]
    return DiagonalTransformation(
        chain.init, chain.update, lambda state: scaling.weights(state[place]), seen
    )


def root(total: jax.Array) -> jax.Array:
    """The square root, with derivative 0 at 0: where no gradient ever was, the derivative of an update shall not be NaN."""
    zero = total == 0
    return jnp.where(zero, 0.0, jnp.sqrt(jnp.where(zero, 1.0, total)))


def bounded(size: jax.Array, direction: jax.Array, blocks: str, max_move: Any) -> jax.Array:
    """max(size, ||direction|| / max_move), with the norms of blocks: see MAX_MOVE in `adagrad_diff.rules.base`."""
    if isinstance(max_move, float) and max_move == math.inf:
        return size
    norm = (
        jnp.abs(direction)
        if blocks == "element"
        else group_root.group_norms(jnp, direction, blocks)
    )
    return jnp.maximum(size, norm / max_move)


def after(g: jax.Array, total: jax.Array) -> jax.Array:
    """The gradient g, available only once the new total is (which is never negative).

    The new total needs the memory of the previous gradient, into which g goes: without an order between the two, XLA makes
    copies of whole arrays, which cost more than the step itself. On a single CPU, one entry of the total is enough to wait for
    all of it (behind a barrier, or XLA would calculate that entry a second time), and the others need not be read; arrays that
    are spread over devices would have to send it around.
    """
    if total.size and jax.default_backend() == "cpu" and jax.device_count() == 1:
        whole: Any = jax.lax.optimization_barrier(jax.lax.stop_gradient(total))  # type: ignore[no-untyped-call]
        first = whole.ravel()[0]
        return jnp.where((first >= 0) | jnp.isnan(first), g, jnp.nan)
    return jnp.where(total >= 0, g, jnp.nan)
