"""The metric of AdaGrad-Diff as a gradient transformation."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from .. import _check
from ..penalties.group_root import block_sum
from ..rules.base import MAX_MOVE
from . import _options
from ._coordinates import block_full, like, real
from ._diagonal import DiagonalTransformation, after, bounded, root

DIFFERENCES = "scale_by_gradient_differences"


class DifferencesState(NamedTuple):
    """What `scale_by_gradient_differences` remembers."""

    total: optax.Updates  # accumulated squares of the differences, one number per block
    prev: optax.Updates  # the previous gradient


class DecayingDifferencesState(NamedTuple):
    """What it remembers if old squares decay."""

    total: optax.Updates
    prev: optax.Updates
    count: jax.Array  # type: ignore[assignment]  # of the steps so far


def scale_by_gradient_differences(
    eps: jax.typing.ArrayLike = 1e-8,
    blocks: str = "element",
    accumulator_dtype: Any = None,
    decay: jax.typing.ArrayLike | None = None,
    max_move: jax.typing.ArrayLike = MAX_MOVE,
    initial_accumulator_value: jax.typing.ArrayLike = 0.0,
) -> DiagonalTransformation:
    r"""Divide gradients by the accumulated size of their differences.

    .. math:: w^n = \varepsilon + \sqrt{\sum_{k \le n} |g^k - g^{k-1}|^2}, \quad g^0 = 0, \qquad g^n \mapsto g^n / w^n

    Parameters
    ----------
    eps : float
        Added to every weight, outside the root; positive.
    blocks : {"element", "row", "tensor"}
        What shares one weight: nothing, what the first axis counts, or the whole array. Complex entries are two real
        coordinates.
    accumulator_dtype : dtype, optional
        Of the state; by default that of the parameters, and float32 for half precision. (To `optax.inject_hyperparams` pass
        a name like "float32": it takes anything callable for a schedule.)
    decay : float, optional
        Forget: the sum becomes the exponential average total = decay total + (1 - decay) \|g^n - g^{n-1}\|^2, divided by
        1 - decay^n, so that the first step is the same. An extension: the paper has no theory for it.
    max_move : float
        With `decay`, weights are at least \|\|g^n\|\| / max_move (with the norm over the block): no entry becomes larger than
        max_move. Averages forget, and without this bound the steps of a gradient that stays the same grow without end.
        `math.inf` for no bound. Without `decay`, weights never shrink, and there is nothing to bound.
    initial_accumulator_value : float
        What the sum begins with, >= 0. An average (`decay`) begins with nothing.

    Returns
    -------
    DiagonalTransformation
        An `optax.GradientTransformation` that `proximal` accepts, too. Its state is a `DifferencesState`, or with `decay` a
        `DecayingDifferencesState`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from adagrad_diff.optax import scale_by_gradient_differences
    >>> scaling = scale_by_gradient_differences()
    >>> state = scaling.init(jnp.zeros(2))
    >>> for g in ([3.0, -1.0], [3.0, 1.0]):  # the first entry does not change: its weight stays, and so does its step
    ...     updates, state = scaling.update(jnp.array(g), state)
    >>> print(updates.round(4))
    [1.     0.4472]
    """
    dtype = _options.scaling(eps, blocks, accumulator_dtype, max_move, DIFFERENCES)
    _options.known(
        _check.nonnegative, initial_accumulator_value, "initial_accumulator_value", DIFFERENCES
    )
    if decay is not None:
        _options.known(_options.fraction, decay, "decay", DIFFERENCES)
        _options.known(
            _no_start, initial_accumulator_value, "initial_accumulator_value", DIFFERENCES
        )
        initial_accumulator_value = 0.0

    def init(params: Any) -> DifferencesState | DecayingDifferencesState:
        total = jax.tree.map(
            lambda x: block_full(x, blocks, dtype, initial_accumulator_value), params
        )
        prev = jax.tree.map(lambda x: block_full(x, "element", dtype), params)
        if decay is None:
            return DifferencesState(total, prev)
        return DecayingDifferencesState(total, prev, jnp.zeros((), jnp.int32))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        del params
        g = jax.tree.map(lambda u, prev: real(u).astype(prev.dtype), updates, state.prev)
        square = jax.tree.map(lambda g, prev: block_sum((g - prev) ** 2, blocks), g, state.prev)
        total = jax.tree.map(lambda t, s: accumulate(t, s, decay), state.total, square)
        state = state._replace(total=total, prev=jax.tree.map(after, g, total))
        if decay is not None:
            state = state._replace(count=optax.safe_increment(state.count))
        return jax.tree.map(
            lambda u, g, w: like(g / w, u), updates, state.prev, weights(state)
        ), state

    def weights(state: Any) -> Any:
        if decay is None:
            return jax.tree.map(lambda t: (root(t) + eps).astype(t.dtype), state.total)
        mean = unbiased(decay, state.count)
        size = jax.tree.map(
            lambda t, g: bounded(root(mean(t)), g, blocks, max_move), state.total, state.prev
        )
        return jax.tree.map(lambda s, t: (s + eps).astype(t.dtype), size, state.total)

    def seen(state: Any) -> Any:
        return jax.tree.map(lambda t: t != 0, state.total)

    return DiagonalTransformation(init, update, weights, seen)


def accumulate(total: jax.Array, new: jax.Array, decay: Any) -> jax.Array:
    """The sum, or the exponential average, with what is new; in the dtype of what there is."""
    return (total + new if decay is None else decay * total + (1 - decay) * new).astype(total.dtype)


def unbiased(decay: Any, count: jax.Array) -> Any:
    """A function that divides an exponential average by 1 - decay^count: by the sum of its coefficients."""
    return lambda average: (average / (1 - decay ** count.astype(average.dtype))).astype(
        average.dtype
    )


def _no_start(value: Any, name: str, owner: str) -> None:
    if value != 0:
        raise ValueError(
            f"The {name!r} parameter of {owner} cannot be used with 'decay', whose average begins with nothing: leave one out."
        )
