"""The optimizers under their short names."""

# Annotations stay objects here: optax's own tests look for `optax.ScalarOrSchedule`.
from collections.abc import Callable
from typing import Any

import optax
from jax.typing import ArrayLike

from ..rules.base import MAX_MOVE
from ._proximal import proximal
from ._scalings import DiagonalTransformation, scale_by_adamdiff, scale_by_gradient_differences
from .penalties import Penalty


def adagraddiff(
    learning_rate: optax.ScalarOrSchedule,
    initial_accumulator_value: ArrayLike = 0.0,
    eps: ArrayLike = 1e-8,
    *,
    blocks: str = "element",
    accumulator_dtype: Any = None,
    decay: ArrayLike | None = None,
    max_move: ArrayLike = MAX_MOVE,
    penalty: Penalty | None = None,
    prox_unseen: bool = False,
) -> optax.GradientTransformationExtraArgs:
    r"""Divide by the accumulated size of gradient differences, then take a proximal step.

    .. math:: w^n = \varepsilon + \sqrt{\sum_{k \le n} |g^k - g^{k-1}|^2}, \quad g^0 = 0, \qquad
              x^{n+1} = \text{prox}^{w^n / \text{lr}}_\varphi (x^n - \text{lr}\, g^n / w^n)

    A drop-in replacement of `optax.adagrad`. Its advantage, a wider range of good learning rates,
    belongs to full batches and low noise: differences of independent noise are larger than the
    noise by sqrt(2), and steps end up that much smaller.

    Parameters
    ----------
    learning_rate : float or schedule
        The paper's eta.
    initial_accumulator_value, eps, blocks, accumulator_dtype, decay, max_move
        See `scale_by_gradient_differences`.
    penalty : Penalty, optional
        A penalty of `adagrad_diff.optax`, applied by its exact proximal step (see `proximal`): L1
        (exact zeros), Ridge, ElasticNet, Box, NonNegative, GroupL2, or your own (see `Penalty`).
        `update` then needs the parameters.
    prox_unseen : bool
        Apply the penalty also to entries that have had no gradient yet, with steps of lr / eps,
        which wipe them. By default they are skipped. See `proximal`.

    Returns
    -------
    optax.GradientTransformationExtraArgs

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import adagraddiff
    >>> optimizer = adagraddiff(learning_rate=1.0)
    >>> x = jnp.array([3.0, -4.0])
    >>> gradient = jax.jit(jax.grad(lambda x: jnp.sum(x**2)))
    >>> state, update = optimizer.init(x), jax.jit(optimizer.update)
    >>> for _ in range(200):
    ...     updates, state = update(gradient(x), state)
    ...     x = optax.apply_updates(x, updates)
    >>> bool(abs(x).max() < 1e-3)
    True

    Notes
    -----
    `jax.grad` gives the conjugate of the direction of ascent for complex parameters. Conjugate it,
    as for every optimizer.
    """
    scaling = scale_by_gradient_differences(
        eps, blocks, accumulator_dtype, decay, max_move, initial_accumulator_value
    )
    return _optimizer(scaling, learning_rate, penalty, prox_unseen)


def adamdiff(
    learning_rate: optax.ScalarOrSchedule,
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
    penalty: Penalty | None = None,
    prox_unseen: bool = False,
) -> optax.GradientTransformationExtraArgs:
    r"""Adam whose second moment is that of gradient differences. The paper has no theory for it.

    .. math:: x^{n+1} = \text{prox}(x^n - \text{lr}\, \hat m / w), \quad
              w = \max(\sqrt{\hat v}, \|\hat m\| / \text{max\_move}) + \varepsilon

    with the averages of `scale_by_adamdiff`. A drop-in replacement of `optax.adam`.

    Parameters
    ----------
    learning_rate : float or schedule
    b1, b2, eps, eps_root, mu_dtype, nesterov, blocks, accumulator_dtype, max_move
        See `scale_by_adamdiff`.
    penalty, prox_unseen
        See `adagraddiff`.

    Returns
    -------
    optax.GradientTransformationExtraArgs

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import adamdiff
    >>> optimizer = adamdiff(learning_rate=0.1)
    >>> x = jnp.array([3.0, -4.0])
    >>> gradient = jax.jit(jax.grad(lambda x: jnp.sum(x**2)))
    >>> state, update = optimizer.init(x), jax.jit(optimizer.update)
    >>> for _ in range(300):
    ...     updates, state = update(gradient(x), state)
    ...     x = optax.apply_updates(x, updates)
    >>> bool(abs(x).max() < 0.1)
    True
    """
    options = {"blocks": blocks, "accumulator_dtype": accumulator_dtype, "max_move": max_move}
    scaling = scale_by_adamdiff(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov, **options)
    return _optimizer(scaling, learning_rate, penalty, prox_unseen)


def adamwdiff(
    learning_rate: optax.ScalarOrSchedule,
    b1: ArrayLike = 0.9,
    b2: ArrayLike = 0.999,
    eps: ArrayLike = 1e-8,
    eps_root: ArrayLike = 0.0,
    mu_dtype: Any = None,
    weight_decay: ArrayLike = 1e-4,
    mask: Any | Callable[[optax.Params], Any] | None = None,
    *,
    nesterov: bool = False,
    blocks: str = "element",
    accumulator_dtype: Any = None,
    max_move: ArrayLike = MAX_MOVE,
    penalty: Penalty | None = None,
    prox_unseen: bool = False,
) -> optax.GradientTransformationExtraArgs:
    r"""`adamdiff` with decoupled weight decay: a drop-in replacement of `optax.adamw`.

    .. math:: x^{n+1} = \text{prox}(x^n - \text{lr}\, (\hat m / w + \text{weight\_decay}\; x^n))

    Parameters
    ----------
    weight_decay : float
        How much parameters shrink, times the learning rate. Unlike the penalty `Ridge`, this is not
        in the metric.
    mask : tree or callable, optional
        Which arrays decay, as for `optax.adamw`: a tree of truth values, or a function of the
        parameters that returns one.
    learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov, blocks, accumulator_dtype
        See `adamdiff`.
    max_move, penalty, prox_unseen
        See `adamdiff`. A penalty comes after the decay, with steps lr / w.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        Its `update` needs the parameters.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import adamwdiff
    >>> optimizer = adamwdiff(learning_rate=0.1, weight_decay=0.5)
    >>> x = jnp.array([1.0, 2.0])
    >>> updates, state = optimizer.update(jnp.array([1.0, 0.0]), optimizer.init(x), x)
    >>> [round(float(value), 3) for value in optax.apply_updates(x, updates)]
    [0.85, 1.9]
    """
    options = {"blocks": blocks, "accumulator_dtype": accumulator_dtype, "max_move": max_move}
    scaling = scale_by_adamdiff(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov, **options)
    decay = optax.add_decayed_weights(weight_decay, mask)
    return _optimizer(scaling, learning_rate, penalty, prox_unseen, decay)


def _optimizer(
    scaling: DiagonalTransformation,
    learning_rate: optax.ScalarOrSchedule,
    penalty: Penalty | None,
    prox_unseen: bool,
    *decay: optax.GradientTransformation,
) -> optax.GradientTransformationExtraArgs:
    """Return the scaling, perhaps with weight decay, and a plain or a proximal step."""
    if penalty is None:
        return optax.chain(scaling, *decay, optax.scale_by_learning_rate(learning_rate))
    if decay:
        inner, chain = scaling, optax.chain(scaling, *decay)
        scaling = DiagonalTransformation(
            chain.init,
            chain.update,
            lambda state: inner.weights(state[0]),
            lambda state: inner.seen(state[0]),  # type: ignore[misc]
        )
    return proximal(scaling, learning_rate, penalty, prox_unseen)
