"""Adam with differences: what the paper names as future work."""

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
from ._differences import accumulate, unbiased

MOMENTS = "scale_by_adamdiff"


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
    eps_root: jax.typing.ArrayLike = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
    blocks: str = "element",
    accumulator_dtype: Any = None,
    max_move: jax.typing.ArrayLike = MAX_MOVE,
) -> DiagonalTransformation:
    r"""Adam's scaling with the second moment of gradient differences. An extension: the paper has no theory for it.

    .. math:: v = \beta_2 v + (1 - \beta_2) |g^n - g^{n-1}|^2, \quad m = \beta_1 m + (1 - \beta_1) g^n, \qquad
              g^n \mapsto \hat m / w, \quad w = \max(\sqrt{\hat v}, \|\hat m\| / \text{max\_move}) + \varepsilon

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`, g^0 = 0.

    Parameters
    ----------
    b1, b2 : float
        Decay of the mean and of the squares.
    eps, blocks, accumulator_dtype
        As for `scale_by_gradient_differences`.
    eps_root, mu_dtype, nesterov
        As for `optax.scale_by_adam`: a number added to v inside the root, the dtype of the mean (by default that of the rest of
        the state), and b1 m / (1 - b1^(n+1)) + (1 - b1) g^n / (1 - b1^n) in place of the mean.
    max_move : float
        No entry becomes larger than this, and no move than this many learning rates. Averages forget: without this bound, the
        steps of a gradient that stays the same grow without end. `math.inf` for no bound.

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
    dtype = _options.scaling(eps, blocks, accumulator_dtype, max_move, MOMENTS)
    mean_dtype = _options.floating(mu_dtype, "mu_dtype", MOMENTS) or dtype
    _options.known(_options.fraction, b1, "b1", MOMENTS)
    _options.known(_options.fraction, b2, "b2", MOMENTS)
    _options.known(_check.nonnegative, eps_root, "eps_root", MOMENTS)
    _check.flag(nesterov, "nesterov", MOMENTS)

    def init(params: Any) -> AdamDiffState:
        def zeros(blocks: str, dtype: Any) -> Any:
            return jax.tree.map(lambda x: block_full(x, blocks, dtype), params)

        return AdamDiffState(
            jnp.zeros((), jnp.int32),
            zeros(blocks, dtype),
            zeros("element", dtype),
            zeros("element", mean_dtype),
        )

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, AdamDiffState]:
        del params
        g = jax.tree.map(lambda u, prev: real(u).astype(prev.dtype), updates, state.prev)
        square = jax.tree.map(lambda g, prev: block_sum((g - prev) ** 2, blocks), g, state.prev)
        total = jax.tree.map(lambda t, s: accumulate(t, s, b2), state.total, square)
        g = jax.tree.map(after, g, total)
        mean = jax.tree.map(lambda m, g: accumulate(m, g, b1), state.mean, g)
        state = AdamDiffState(optax.safe_increment(state.count), total, g, mean)
        return jax.tree.map(
            lambda u, d, w: like(d / w, u), updates, direction(state), weights(state)
        ), state

    def direction(state: AdamDiffState) -> Any:
        """The mean, as it is now or (Nesterov) as the next one would be if the gradient stayed the same."""
        mean = jax.tree.map(lambda m, g: m.astype(g.dtype), state.mean, state.prev)
        now = unbiased(b1, state.count)
        if not nesterov:
            return jax.tree.map(now, mean)
        then = unbiased(b1, optax.safe_increment(state.count))
        return jax.tree.map(
            lambda m, g: (b1 * then(m) + (1 - b1) * now(g)).astype(g.dtype), mean, state.prev
        )

    def weights(state: Any) -> Any:
        mean = unbiased(b2, state.count)

        def weight(v: jax.Array, d: jax.Array) -> jax.Array:
            return (bounded(root(mean(v) + eps_root), d, blocks, max_move) + eps).astype(v.dtype)

        return jax.tree.map(weight, state.total, direction(state))

    def seen(state: Any) -> Any:
        return jax.tree.map(lambda v: v != 0, state.total)

    return DiagonalTransformation(init, update, weights, seen)
