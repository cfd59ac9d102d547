"""Proximal steps in the metric of an adaptive transformation."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from .. import _check
from ._coordinates import like, real, widened
from ._recognise import diagonal
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
    scaling: optax.GradientTransformation,
    learning_rate: optax.ScalarOrSchedule,
    penalty: Penalty,
    prox_unseen: bool = False,
) -> optax.GradientTransformationExtraArgs:
    r"""Scale, multiply by the learning rate, and apply the penalty's prox in the metric that this makes.

    .. math:: x^{n+1} = \arg\min_y \varphi(y) + \sum_i \frac{(y_i - z_i)^2}{2 s_i}, \qquad
              z = x^n - s\, d^n, \quad s = \text{lr} / w^n

    where w are the weights of the scaling and d the gradient (with momentum, if the scaling has it). The updates are
    x^{n+1} - x^n, so this comes last in a chain: whatever changes them later changes x^{n+1}.

    Where there has been no gradient yet, the accumulator is exactly zero and the weight is eps: the step lr / eps of the
    formula is enormous, and any penalty would wipe rows of an embedding that no batch has shown so far, or all of a layer
    behind a head that begins with zeros. So the prox leaves such coordinates alone (bounds hold from the first gradient on; in
    a group of `GroupL2` they count in the norm, and keep their values). `prox_unseen=True` is the formula to the letter.

    `optax.apply_updates` adds them up again: x + (0 - x) is exactly 0, so zeros of `L1`, `GroupL2` and `NonNegative` are exact.
    x + (u - x) is u up to rounding: an entry at a bound u of a `Box`, u not 0, may lie beyond it by the last digit. Where that
    matters, clip parameters after adding.

    A NaN in a gradient becomes a NaN in the parameters, with every penalty; wrap the optimizer in `optax.apply_if_finite` to
    skip such steps.

    Parameters
    ----------
    scaling : optax.GradientTransformation
        `scale_by_gradient_differences`, `scale_by_adamdiff`; of optax `scale_by_rss`, `scale_by_rms`, `scale_by_stddev`,
        `scale_by_adam`, `scale_by_amsgrad`, or for plain gradient steps `identity`, `trace` and `ema`; a chain of one of them
        after clipping and the like, and before `add_decayed_weights`; or any `DiagonalTransformation`. State and arithmetic are
        in at least single precision.
    learning_rate : float or schedule
        As for every optimizer of optax.
    penalty : Penalty
        A penalty of `adagrad_diff.optax`. Each array of the parameters is penalised by itself; `optax.masked` and
        `optax.partition` give some arrays other penalties, or none.
    prox_unseen : bool
        Apply the prox also where there has been no gradient.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        Its `update` needs the parameters.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import L1, proximal
    >>> optimizer = proximal(optax.scale_by_adam(), 0.1, L1(1.0))
    >>> x = jnp.array([3.0, 1.0])
    >>> state, update = optimizer.init(x), jax.jit(optimizer.update)
    >>> for _ in range(200):  # minimises (x - 2)^2 + (y - 0.2)^2 + |x| + |y|
    ...     updates, state = update(2 * (x - jnp.array([2.0, 0.2])), state, x)
    ...     x = optax.apply_updates(x, updates)
    >>> print(x.round(2))
    [1.5 0. ]
    """
    metric = diagonal(scaling)
    if not isinstance(penalty, Penalty):
        raise TypeError(
            f"The 'penalty' parameter of proximal must be a penalty of adagrad_diff.optax. Got {penalty!r}."
        )
    seen_in = None if _check.flag(prox_unseen, "prox_unseen", "proximal") else metric.seen
    scale = optax.with_extra_args_support(metric)
    rate = optax.scale_by_learning_rate(learning_rate, flip_sign=False)

    def init(params: Any) -> ProximalState:
        return ProximalState(scale.init(widened(params)), rate.init(params))

    def update(
        updates: Any, state: Any, params: Any = None, **extra_args: Any
    ) -> tuple[Any, ProximalState]:
        if params is None:
            raise ValueError(NO_PARAMS)
        scaled, scaling_state = scale.update(
            widened(updates), state.scaling, widened(params), **extra_args
        )
        inverse = _spread(
            jax.tree.map(lambda w: 1 / jnp.asarray(w), metric.weights(scaling_state)), params
        )
        seen = _spread(True if seen_in is None else seen_in(scaling_state), params)
        direction, _ = rate.update(scaled, state.rate)
        steps, rate_state = rate.update(inverse, state.rate)
        change = partial(_change, penalty)
        changes = jax.tree.map(change, params, updates, direction, steps, seen)
        return changes, ProximalState(scaling_state, rate_state)

    return optax.GradientTransformationExtraArgs(init, update)


def _spread(prefix: Any, tree: Any) -> Any:
    """A tree like the other one: each leaf of a prefix, for all leaves in its place."""
    return jax.tree.map(lambda leaf, part: jax.tree.map(lambda _: leaf, part), prefix, tree)


def _change(
    penalty: Penalty, x: jax.Array, g: jax.Array, direction: jax.Array, step: Any, seen: Any
) -> jax.Array:
    """prox(x - direction) - x, calculated on real coordinates in at least single precision."""
    coordinates = real(x)
    z = coordinates - real(direction)
    step = step.astype(z.dtype)
    if seen is True:
        y = penalty.prox(z, step)
    else:  # where nothing has accumulated, a step of zero; and without a gradient, not even bounds
        y = jnp.where(seen | (real(g) != 0), penalty.prox(z, jnp.where(seen, step, 0.0)), z)
    return like(y.astype(z.dtype) - coordinates, x)
