"""Proximal steps in the metric of an adaptive transformation."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import optax

from ._coordinates import like, real, wide
from ._diagonal import DiagonalTransformation
from .penalties import Penalty

NO_PARAMS = (  # in optax's own words
    "You are using a transformation that requires the current value of parameters, "
    "but you are not passing `params` when calling `update`."
)


class ProximalState(NamedTuple):
    """What `proximal` remembers."""

    scaling: optax.OptState
    rate: optax.OptState  # empty, or how often a schedule was asked


def proximal(
    scaling: DiagonalTransformation, learning_rate: optax.ScalarOrSchedule, penalty: Penalty
) -> optax.GradientTransformationExtraArgs:
    r"""Scale, multiply by the learning rate, and apply the penalty's prox in the metric that this makes.

    .. math:: x^{n+1} = \arg\min_y \varphi(y) + \sum_i \frac{(y_i - z_i)^2}{2 s_i}, \qquad
              z = x^n - s\, d^n, \quad s = \text{lr} / w^n

    where w are the weights of the scaling and d the gradient (with momentum, if the scaling has it). The updates are
    x^{n+1} - x^n, so this comes last in a chain: whatever changes them later changes x^{n+1}.

    `optax.apply_updates` adds them up again: x + (0 - x) is exactly 0, so zeros of `L1`, `GroupL2` and `NonNegative` are exact.
    x + (u - x) is u up to rounding: an entry at a bound u of a `Box`, u not 0, may lie beyond it by the last digit. Where that
    matters, clip parameters after adding.

    Parameters
    ----------
    scaling : DiagonalTransformation
        `scale_by_gradient_differences`, `scale_by_adamdiff`, or another transformation that can tell its weights.
    learning_rate : float or schedule
        As for every optimizer of optax.
    penalty : Penalty
        A penalty of `adagrad_diff.optax`. Each array of the parameters is penalised by itself; `optax.masked` and
        `optax.partition` give some arrays other penalties, or none.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        Its `update` needs the parameters.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import L1, proximal, scale_by_gradient_differences
    >>> optimizer = proximal(scale_by_gradient_differences(), 0.5, L1(1.0))
    >>> x = jnp.array([3.0, 0.2])
    >>> state = optimizer.init(x)
    >>> for _ in range(100):  # minimises (x - 2)^2 + (y - 0.2)^2 + |x| + |y|
    ...     updates, state = optimizer.update(2 * (x - jnp.array([2.0, 0.2])), state, x)
    ...     x = optax.apply_updates(x, updates)
    >>> print(x.round(4))
    [1.5 0. ]
    """
    if not isinstance(scaling, DiagonalTransformation):
        raise TypeError(
            "The 'scaling' parameter of proximal must be a transformation that can tell its weights: one of this package, "
            f"or a DiagonalTransformation. Got {scaling!r} instead."
        )
    if not isinstance(penalty, Penalty):
        raise TypeError(f"The 'penalty' parameter of proximal must be a penalty of adagrad_diff.optax. Got {penalty!r}.")
    scale = optax.with_extra_args_support(scaling)
    rate = optax.scale_by_learning_rate(learning_rate, flip_sign=False)

    def init(params: Any) -> ProximalState:
        return ProximalState(scale.init(params), rate.init(params))

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, ProximalState]:
        if params is None:
            raise ValueError(NO_PARAMS)
        precise = jax.tree.map(lambda g: g.astype(wide(g.dtype)), updates)
        scaled, scaling_state = scale.update(precise, state.scaling, params, **extra_args)
        inverse = jax.tree.map(lambda w: 1 / w, scaling.weights(scaling_state))
        direction, _ = rate.update(scaled, state.rate)
        steps, rate_state = rate.update(inverse, state.rate)
        changes = jax.tree.map(lambda x, d, s: _change(x, d, s, penalty), params, direction, steps)
        return changes, ProximalState(scaling_state, rate_state)

    return optax.GradientTransformationExtraArgs(init, update)


def _change(x: jax.Array, direction: jax.Array, step: Any, penalty: Penalty) -> jax.Array:
    """prox(x - direction) - x, calculated on real coordinates in at least single precision."""
    coordinates = real(x)
    z = coordinates - real(direction)
    return like(penalty.prox(z, step.astype(z.dtype)).astype(z.dtype) - coordinates, x)
