"""Proximal steps in the metric of a scaling."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from .. import _check
from ._arrays import like, real, wide
from ._scalings import DiagonalTransformation
from .penalties import Penalty

NO_PARAMS = (  # optax's message
    "You are using a transformation that requires the current value of parameters, "
    "but you are not passing `params` when calling `update`."
)


class ProximalState(NamedTuple):
    """State of `proximal`."""

    scaling: optax.OptState
    rate: optax.OptState  # empty, or how often a schedule was called


def proximal(
    scaling: DiagonalTransformation,
    learning_rate: optax.ScalarOrSchedule,
    penalty: Penalty,
    prox_unseen: bool = False,
) -> optax.GradientTransformationExtraArgs:
    r"""Scale, multiply by the learning rate, and apply the proximal operator in this metric.

    .. math:: x^{n+1} = \arg\min_y \varphi(y) + \sum_i \frac{(y_i - z_i)^2}{2 s_i}, \qquad
              z = x^n - s\, d^n, \quad s = \text{lr} / w^n

    where w are the weights of the scaling and d the gradient (or its mean, if the scaling has one).
    The updates are x^{n+1} - x^n. So put clipping and the like before it in a chain, and nothing
    after it.

    Where there has been no gradient yet, the accumulator is exactly zero and the weight is eps. The
    step lr / eps of the formula would wipe rows of an embedding that no batch has contained. So
    nothing is done to an entry, not even by a bound, until it has a nonzero gradient. In a group of
    `GroupL2` it keeps its value and counts in the norm. `prox_unseen=True` applies the formula
    without exceptions.

    Zeros are exact: x + (0 - x) is 0. An entry at a nonzero bound of a `Box` may exceed it by
    rounding. A NaN in a gradient becomes a NaN in the parameters; `optax.apply_if_finite` skips
    such steps.

    Parameters
    ----------
    scaling : DiagonalTransformation
        `scale_by_gradient_differences()`, `scale_by_adamdiff()`, or any transformation of optax
        together with its weights: see `DiagonalTransformation`, whose example is
        `optax.scale_by_adam`. State and arithmetic are in at least single precision.
    learning_rate : float or schedule
        As for every optimizer of optax.
    penalty : Penalty
        A penalty of `adagrad_diff.optax`. Each array of the parameters is penalized by itself.
        `optax.masked` and `optax.partition` give some arrays other penalties, or none.
    prox_unseen : bool
        Apply the prox also where there has been no gradient.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        Its `update` needs the parameters.

    Examples
    --------
    Minimize (x - 2)^2 + (y - 0.2)^2 + \|x\| + \|y\| by plain gradient steps, whose weights are 1:

    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import L1, DiagonalTransformation, proximal
    >>> plain = DiagonalTransformation(*optax.identity(), weights=lambda state: 1.0)
    >>> optimizer = proximal(plain, 0.1, L1(1.0))
    >>> x = jnp.array([3.0, 1.0])
    >>> state = optimizer.init(x)
    >>> for _ in range(100):
    ...     updates, state = optimizer.update(2 * (x - jnp.array([2.0, 0.2])), state, x)
    ...     x = optax.apply_updates(x, updates)
    >>> print(x.round(2))
    [1.5 0. ]
    """
    if not isinstance(scaling, DiagonalTransformation):
        raise TypeError(
            "The 'scaling' parameter of proximal must be a DiagonalTransformation, which tells the "
            f"weights that it divides by. Got {_check.shown(scaling)}. Write "
            "DiagonalTransformation(*scaling, weights) with a function of its state: "
            "help(DiagonalTransformation) has that of optax.scale_by_adam()."
        )
    if not isinstance(penalty, Penalty):
        raise TypeError(
            "The 'penalty' parameter of proximal must be a penalty of adagrad_diff.optax. "
            f"Got {penalty!r}."
        )
    seen_in = None if _check.flag(prox_unseen, "prox_unseen", "proximal") else scaling.seen
    scale = optax.with_extra_args_support(scaling)
    rate = optax.scale_by_learning_rate(learning_rate, flip_sign=False)

    def init(params: Any) -> ProximalState:
        like_params = jax.tree.map(lambda x: jnp.zeros_like(x, dtype=wide(x)), params)
        return ProximalState(scale.init(like_params), rate.init(params))

    def update(
        updates: Any, state: Any, params: Any = None, **extra_args: Any
    ) -> tuple[Any, ProximalState]:
        if params is None:
            raise ValueError(NO_PARAMS)
        wide_updates, x = jax.tree.map(lambda x: x.astype(wide(x)), (updates, params))
        scaled, scaling_state = scale.update(wide_updates, state.scaling, x, **extra_args)
        inverse = jax.tree.map(lambda w: 1 / jnp.asarray(w), scaling.weights(scaling_state))
        seen = True if seen_in is None else seen_in(scaling_state)
        direction, _ = rate.update(scaled, state.rate)
        steps, rate_state = rate.update(jax.tree.broadcast(inverse, params), state.rate)
        changes = jax.tree.map(
            partial(_change, penalty),
            params,
            updates,
            direction,
            steps,
            jax.tree.broadcast(seen, params),
        )
        return changes, ProximalState(scaling_state, rate_state)

    return optax.GradientTransformationExtraArgs(init, update)


def _change(
    penalty: Penalty, x: jax.Array, g: jax.Array, direction: jax.Array, step: Any, seen: Any
) -> jax.Array:
    """Return prox(x - direction) - x, calculated on real coordinates."""
    coordinates = real(x)
    z = coordinates - real(direction)
    step = jnp.where(seen, step, 0.0).astype(z.dtype)
    y = jnp.where(seen | (real(g) != 0), penalty.prox(z, step), z)
    return like(y.astype(z.dtype) - coordinates, x)
