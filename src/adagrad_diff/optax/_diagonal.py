"""Transformations that divide every entry by a weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax


class DiagonalTransformation(optax.GradientTransformation):  # type: ignore[misc, unused-ignore]
    """A gradient transformation that divides by weights, and can tell them: what `proximal` needs to know.

    Parameters
    ----------
    init, update
        As of every `optax.GradientTransformation`.
    weights : callable
        `weights(state)`, with the state that `update` returns, are the positive numbers by which it has just divided: a tree
        like the parameters, of arrays that broadcast against them. (For complex parameters, against their real and
        imaginary parts along one more axis at the end.)

    Examples
    --------
    Any diagonal scaling of optax can be told so, and gets proximal steps:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import L1, DiagonalTransformation, proximal
    >>> weights = lambda state: jax.tree.map(lambda t: jnp.sqrt(t + 1e-7), state.sum_of_squares)
    >>> rss = DiagonalTransformation(*optax.scale_by_rss(), weights)
    >>> proximal_adagrad = proximal(rss, 0.1, L1(0.01))
    """

    weights: Callable[[Any], Any]

    def __new__(cls, init: Any, update: Any, weights: Callable[[Any], Any]) -> DiagonalTransformation:
        self: DiagonalTransformation = super().__new__(cls, init, update)
        self.weights = weights
        return self


def root(total: jax.Array) -> jax.Array:
    """The square root, with derivative 0 at 0: where no gradient ever was, the derivative of an update shall not be NaN."""
    zero = total == 0
    return jnp.where(zero, 0.0, jnp.sqrt(jnp.where(zero, 1.0, total)))


def after(g: jax.Array, total: jax.Array) -> jax.Array:
    """The gradient g, available only once the new total is (which is never negative).

    The new total needs the memory of the previous gradient, into which g goes: without an order between the two, XLA makes
    copies of whole arrays, which cost more than the step itself.
    """
    return jnp.where(total >= 0, g, jnp.nan)
