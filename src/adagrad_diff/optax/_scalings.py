"""Gradient transformations that divide by weights made of gradient differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike

from .. import _check
from ..penalties.group_root import BLOCKS, block_sum
from ..rules.base import MAX_MOVE
from ._arrays import after, block_full, bounded, like, real, root


class DiagonalTransformation(optax.GradientTransformation):  # type: ignore[misc, unused-ignore]
    """A gradient transformation that divides by weights, and tells them to `proximal`.

    Parameters
    ----------
    init, update
        The functions of an `optax.GradientTransformation`.
    weights : callable
        `weights(state)`, with the state that `update` returns, are the positive numbers by which it
        has just divided: a tree like the parameters, or a prefix of it (one number for all arrays),
        of arrays that broadcast against them. For complex parameters, they broadcast against their
        real and imaginary parts along one more axis at the end.
    seen : callable, optional
        `seen(state)`, a tree like that of the weights, is False where there has been no gradient
        yet, so that the weight has no meaning. `proximal` skips those entries. By default, all
        weights are used.

    Examples
    --------
    Adam's scaling of optax, with its weights (the default of `eps_root` is 0):

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import L1, DiagonalTransformation, proximal
    >>> b2, eps = 0.99, 1e-8
    >>> def weights(state):
    ...     correction = 1 - b2**state.count
    ...     return jax.tree.map(lambda nu: jnp.sqrt(nu / correction) + eps, state.nu)
    >>> def seen(state):
    ...     return jax.tree.map(lambda nu: nu != 0, state.nu)
    >>> adam = DiagonalTransformation(*optax.scale_by_adam(b2=b2, eps=eps), weights, seen)
    >>> optimizer = proximal(adam, 0.1, L1(0.01))
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


class DifferencesState(NamedTuple):
    """State of `scale_by_gradient_differences`."""

    nu: optax.Updates  # accumulated squares of the differences, one number per block
    prev: optax.Updates  # the previous gradient


class DecayingDifferencesState(NamedTuple):
    """State of `scale_by_gradient_differences` with a decay."""

    nu: optax.Updates  # average of the squared differences, one number per block
    prev: optax.Updates  # the previous gradient
    count: jax.Array  # type: ignore[assignment]  # of the steps so far


class AdamDiffState(NamedTuple):
    """State of `scale_by_adamdiff`, with the names of `optax.ScaleByAdamState`."""

    count: jax.Array  # type: ignore[assignment]  # of the steps so far
    mu: optax.Updates  # average of the gradients
    nu: optax.Updates  # average of the squared differences, one number per block
    prev: optax.Updates  # the previous gradient


def scale_by_gradient_differences(
    eps: ArrayLike = 1e-8,
    blocks: str = "element",
    accumulator_dtype: Any = None,
    decay: ArrayLike | None = None,
    max_move: ArrayLike = MAX_MOVE,
    initial_accumulator_value: ArrayLike = 0.0,
) -> DiagonalTransformation:
    r"""Divide gradients by the accumulated size of their differences.

    .. math:: w^n = \varepsilon + \sqrt{\sum_{k \le n} |g^k - g^{k-1}|^2}, \quad g^0 = 0, \qquad
              g^n \mapsto g^n / w^n

    Parameters
    ----------
    eps : float
        Added to every weight, outside the root. Positive.
    blocks : {"element", "row", "tensor"}
        Which entries share one weight: none, those with the same first index, or the whole array.
        Complex entries are two real ones.
    accumulator_dtype : dtype, optional
        Precision of the state. The default is that of the parameters, and float32 for half
        precision. (Pass a name like "float32" to `optax.inject_hyperparams`, which takes callables
        for schedules.)
    decay : float, optional
        Replace the sum by the exponential average nu = decay nu + (1 - decay) \|g^n - g^{n-1}\|^2,
        divided by 1 - decay^n, so that the first step is the same. The paper has no theory for it.
    max_move : float
        With `decay`, weights are at least \|\|g^n\|\| / max_move (with the norm of the block), so
        that no entry becomes larger than max_move. Otherwise the steps of a constant gradient would
        grow without end. `math.inf` removes the bound. Without `decay`, weights never shrink.
    initial_accumulator_value : float
        Initial value of the sum, >= 0. Cannot be used with `decay`.

    Returns
    -------
    DiagonalTransformation
        Its state is a `DifferencesState`, or with `decay` a `DecayingDifferencesState`.

    Examples
    --------
    The first entry does not change. Its weight stays, and so does its step:

    >>> import jax.numpy as jnp
    >>> from adagrad_diff.optax import scale_by_gradient_differences
    >>> scaling = scale_by_gradient_differences()
    >>> state = scaling.init(jnp.zeros(2))
    >>> for g in ([3.0, -1.0], [3.0, 1.0]):
    ...     updates, state = scaling.update(jnp.array(g), state)
    >>> print(updates.round(4))
    [1.     0.4472]
    """
    owner, start = "scale_by_gradient_differences", initial_accumulator_value
    dtype = _check_scaling(eps, blocks, accumulator_dtype, max_move, owner)
    check(_check.nonnegative, start, "initial_accumulator_value", owner)
    if decay is None:
        max_move = math.inf
    else:
        check(_check.fraction, decay, "decay", owner)
        if isinstance(start, KNOWN) and start != 0:
            raise ValueError(
                f"The 'initial_accumulator_value' parameter of {owner} cannot be used with "
                "'decay', whose average begins with nothing. Leave one out."
            )
    return _scaling(None, decay, eps, blocks, dtype, max_move, start=start)


def scale_by_adamdiff(
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.999,
    eps: ArrayLike = 1e-8,
    eps_root: ArrayLike = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
    blocks: str = "element",
    accumulator_dtype: Any = None,
    max_move: ArrayLike = MAX_MOVE,
) -> DiagonalTransformation:
    r"""Scale as Adam does, with the second moment of gradient differences.

    .. math:: v = \beta_2 v + (1 - \beta_2) |g^n - g^{n-1}|^2, \quad
              m = \beta_1 m + (1 - \beta_1) g^n, \qquad g^n \mapsto \hat m / w, \quad
              w = \max(\sqrt{\hat v}, \|\hat m\| / \text{max\_move}) + \varepsilon

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`, g^0 = 0. The
    paper has no theory for it.

    Parameters
    ----------
    b1, b2 : float
        Decay of the mean and of the squares.
    eps, blocks, accumulator_dtype
        See `scale_by_gradient_differences`.
    eps_root, mu_dtype, nesterov
        See `optax.scale_by_adam`: a number added to v inside the root, the precision of the mean
        (by default that of the rest of the state), and
        b1 m / (1 - b1^(n+1)) + (1 - b1) g^n / (1 - b1^n) in place of the mean.
    max_move : float
        No entry becomes larger than this. Otherwise the steps of a constant gradient would grow
        without end. `math.inf` removes the bound.

    Returns
    -------
    DiagonalTransformation
        Its state is an `AdamDiffState`.

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
    owner = "scale_by_adamdiff"
    dtype = _check_scaling(eps, blocks, accumulator_dtype, max_move, owner)
    mu_dtype = _floating(mu_dtype, "mu_dtype", owner)
    check(_check.fraction, b1, "b1", owner)
    check(_check.fraction, b2, "b2", owner)
    check(_check.nonnegative, eps_root, "eps_root", owner)
    _check.flag(nesterov, "nesterov", owner)
    mean = {"mu_dtype": mu_dtype or dtype, "nesterov": nesterov}
    return _scaling(b1, b2, eps, blocks, dtype, max_move, eps_root=eps_root, **mean)


def _scaling(
    b1: Any,
    b2: Any,
    eps: Any,
    blocks: str,
    dtype: Any,
    max_move: Any,
    start: Any = 0.0,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    nesterov: bool = False,
) -> DiagonalTransformation:
    """Return a scaling. Without b1 directions are gradients, without b2 squares are added up."""

    def init(params: Any) -> Any:
        def full(blocks: str, dtype: Any, value: Any = 0.0) -> Any:
            return jax.tree.map(lambda x: block_full(x, blocks, dtype, value), params)

        buffers = {"nu": full(blocks, dtype, start), "prev": full("element", dtype)}
        if b2 is None:
            return DifferencesState(**buffers)
        buffers["count"] = jnp.zeros((), jnp.int32)
        if b1 is None:
            return DecayingDifferencesState(**buffers)
        return AdamDiffState(mu=full("element", mu_dtype), **buffers)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        g = jax.tree.map(lambda u, prev: real(u).astype(prev.dtype), updates, state.prev)
        square = jax.tree.map(lambda g, prev: block_sum((g - prev) ** 2, blocks), g, state.prev)
        nu = jax.tree.map(partial(_accumulate, b2), state.nu, square)
        g = jax.tree.map(after, g, nu)
        if b1 is not None:
            state = state._replace(mu=jax.tree.map(partial(_accumulate, b1), state.mu, g))
        if b2 is not None:
            state = state._replace(count=optax.safe_increment(state.count))
        state = state._replace(nu=nu, prev=g)
        scaled = jax.tree.map(
            lambda u, d, w: like(d / w, u), updates, direction(state), weights(state)
        )
        return scaled, state

    def direction(state: Any) -> Any:
        """Return the mean, or with Nesterov the next one if the gradient stayed the same."""
        if b1 is None:
            return state.prev
        n = state.count
        mu = jax.tree.map(lambda m, g: m.astype(g.dtype), state.mu, state.prev)
        if not nesterov:
            return optax.tree.bias_correction(mu, b1, n)
        then = optax.tree.bias_correction(mu, b1, optax.safe_increment(n))
        now = optax.tree.bias_correction(state.prev, b1, n)
        return jax.tree.map(lambda m, g: jnp.asarray(b1 * m + (1 - b1) * g, g.dtype), then, now)

    def weights(state: Any) -> Any:
        def one(v: jax.Array, d: jax.Array) -> jax.Array:
            return jnp.asarray(bounded(root(v + eps_root), d, blocks, max_move) + eps, v.dtype)

        nu = state.nu if b2 is None else optax.tree.bias_correction(state.nu, b2, state.count)
        return jax.tree.map(one, nu, direction(state))

    seen = lambda state: jax.tree.map(lambda v: v != 0, state.nu)
    return DiagonalTransformation(init, update, weights, seen)


def _accumulate(decay: Any, old: jax.Array, new: jax.Array) -> jax.Array:
    """Return the sum, or the exponential average, with a new term."""
    total = old + new if decay is None else decay * old + (1 - decay) * new
    return jnp.asarray(total, old.dtype)


# ------------------------------------------------------------ options

# Other values, such as arrays under jit, vmap or `inject_hyperparams`, are not known yet.
KNOWN = (int, float, np.generic, str, type(None))


def check(test: Callable[[Any, str, str], Any], value: Any, name: str, owner: str) -> None:
    """Apply a check to a value that is known now."""
    if isinstance(value, KNOWN):
        test(value, name, owner)


def _check_scaling(eps: Any, blocks: Any, dtype: Any, max_move: Any, owner: str) -> Any:
    """Check the options that both scalings have, and return the dtype of the state."""
    check(_check.positive, eps, "eps", owner)
    if not (isinstance(max_move, float) and max_move == math.inf):
        check(_check.positive, max_move, "max_move", owner)
    _check.one_of(blocks, BLOCKS, "blocks", owner)
    return _floating(dtype, "accumulator_dtype", owner)


def _floating(value: Any, name: str, owner: str) -> Any:
    """Return a dtype of floating-point numbers, or None."""
    dtype = None if value is None else jnp.dtype(value)
    if not (dtype is None or jnp.issubdtype(dtype, jnp.floating)):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a floating-point dtype. "
            f"Got {value!r} instead."
        )
    return dtype
