"""Adam with differences: what the paper names as future work."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from ..common.blocks import block_sum
from . import _check
from ._coordinates import block_zeros, like, real
from ._diagonal import DiagonalTransformation, after, root
from ._differences import accumulate, unbiased


class AdamDiffState(NamedTuple):
    """What `scale_by_adamdiff` remembers."""

    count: jax.Array  # type: ignore[assignment]  # of the steps so far
    total: optax.Updates  # average of the squared differences, one number per block
    prev: optax.Updates  # the previous gradient
    mean: optax.Updates  # average of the gradients


def scale_by_adamdiff(
    b1: jax.typing.ArrayLike = 0.9,
    b2: jax.typing.ArrayLike = 0.999,
    eps: jax.typing.ArrayLike = 1e-8,
    blocks: str = "element",
    accumulator_dtype: Any = None,
) -> DiagonalTransformation:
    r"""Adam's scaling with the second moment of gradient differences. An extension: the paper has no theory for it.

    .. math:: v = \beta_2 v + (1 - \beta_2) |g^n - g^{n-1}|^2, \quad m = \beta_1 m + (1 - \beta_1) g^n, \qquad
              g^n \mapsto \hat m / (\sqrt{\hat v} + \varepsilon)

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`, g^0 = 0.

    Parameters
    ----------
    b1, b2 : float
        Decay of the mean and of the squares.
    eps, blocks, accumulator_dtype
        As for `scale_by_gradient_differences`.

    Returns
    -------
    DiagonalTransformation
        An `optax.GradientTransformation` that `proximal` accepts, too. Its state is an `AdamDiffState`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from adagrad_diff.optax import scale_by_adamdiff
    >>> scaling = scale_by_adamdiff(b1=0.5, b2=0.5)
    >>> state = scaling.init(jnp.zeros(2))
    >>> for g in ([3.0, -1.0], [3.0, 1.0]):
    ...     updates, state = scaling.update(jnp.array(g), state)
    >>> print(updates.round(4))
    [1.7321 0.1925]
    """
    dtype = _check.scaling(eps, blocks, accumulator_dtype, "scale_by_adamdiff")
    _check.known(_check.fraction, b1, "b1", "scale_by_adamdiff")
    _check.known(_check.fraction, b2, "b2", "scale_by_adamdiff")

    def init(params: Any) -> AdamDiffState:
        def zeros(blocks: str) -> Any:
            return jax.tree.map(lambda x: block_zeros(x, blocks, dtype), params)

        return AdamDiffState(jnp.zeros((), jnp.int32), zeros(blocks), zeros("element"), zeros("element"))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, AdamDiffState]:
        del params
        g = jax.tree.map(lambda u, prev: real(u).astype(prev.dtype), updates, state.prev)
        square = jax.tree.map(lambda g, prev: block_sum((g - prev) ** 2, blocks), g, state.prev)
        total = jax.tree.map(lambda t, s: accumulate(t, s, b2), state.total, square)
        g = jax.tree.map(after, g, total)
        mean = jax.tree.map(lambda m, g: accumulate(m, g, b1), state.mean, g)
        state = AdamDiffState(optax.safe_increment(state.count), total, g, mean)
        correct = unbiased(b1, state.count)
        scaled = jax.tree.map(lambda u, m, w: like(correct(m) / w, u), updates, mean, weights(state))
        return scaled, state

    def weights(state: Any) -> Any:
        correct = unbiased(b2, state.count)
        return jax.tree.map(lambda v: (root(correct(v)) + eps).astype(v.dtype), state.total)

    return DiagonalTransformation(init, update, weights)
