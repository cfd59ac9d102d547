"""The metric of AdaGrad-Diff as a gradient transformation."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from ..common.blocks import block_sum
from . import _check
from ._coordinates import block_zeros, like, real
from ._diagonal import DiagonalTransformation, after, root


class DifferencesState(NamedTuple):
    """What `scale_by_gradient_differences` remembers."""

    total: optax.Updates  # accumulated squares of the differences, one number per block
    prev: optax.Updates  # the previous gradient
    count: jax.Array | None  # type: ignore[assignment]  # of the steps so far, if old squares decay


def scale_by_gradient_differences(
    eps: jax.typing.ArrayLike = 1e-8,
    blocks: str = "element",
    accumulator_dtype: Any = None,
    decay: jax.typing.ArrayLike | None = None,
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

    Returns
    -------
    DiagonalTransformation
        An `optax.GradientTransformation` that `proximal` accepts, too. Its state is a `DifferencesState`.

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
    dtype = _check.scaling(eps, blocks, accumulator_dtype, "scale_by_gradient_differences")
    if decay is not None:
        _check.known(_check.fraction, decay, "decay", "scale_by_gradient_differences")

    def init(params: Any) -> DifferencesState:
        return DifferencesState(
            total=jax.tree.map(lambda x: block_zeros(x, blocks, dtype), params),
            prev=jax.tree.map(lambda x: block_zeros(x, "element", dtype), params),
            count=None if decay is None else jnp.zeros((), jnp.int32),
        )

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, DifferencesState]:
        del params
        g = jax.tree.map(lambda u, prev: real(u).astype(prev.dtype), updates, state.prev)
        square = jax.tree.map(lambda g, prev: block_sum((g - prev) ** 2, blocks), g, state.prev)
        total = jax.tree.map(lambda t, s: accumulate(t, s, decay), state.total, square)
        g = jax.tree.map(after, g, total)
        state = DifferencesState(total, g, None if decay is None else optax.safe_increment(state.count))
        scaled = jax.tree.map(lambda u, g, w: like(g / w, u), updates, g, weights(state))
        return scaled, state

    def weights(state: Any) -> Any:
        correct = (lambda t: t) if decay is None else unbiased(decay, state.count)
        return jax.tree.map(lambda t: (root(correct(t)) + eps).astype(t.dtype), state.total)

    return DiagonalTransformation(init, update, weights)


def accumulate(total: jax.Array, new: jax.Array, decay: Any) -> jax.Array:
    """The sum, or the exponential average, with what is new; in the dtype of what there is."""
    return (total + new if decay is None else decay * total + (1 - decay) * new).astype(total.dtype)


def unbiased(decay: Any, count: jax.Array) -> Any:
    """A function that divides an exponential average by 1 - decay^count: by the sum of its coefficients."""
    return lambda average: (average / (1 - decay ** count.astype(average.dtype))).astype(average.dtype)
