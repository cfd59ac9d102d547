"""The optimizers under their short names."""

# Annotations stay objects here: optax's own tests look for `optax.ScalarOrSchedule`.
from typing import Any

import jax
import optax

from ._diagonal import DiagonalTransformation
from ._differences import scale_by_gradient_differences
from ._moments import scale_by_adamdiff
from ._proximal import proximal
from .penalties import Penalty


def adagrad_diff(
    learning_rate: optax.ScalarOrSchedule,
    eps: jax.typing.ArrayLike = 1e-8,
    blocks: str = "element",
    accumulator_dtype: Any = None,
    decay: jax.typing.ArrayLike | None = None,
    penalty: Penalty | None = None,
) -> optax.GradientTransformationExtraArgs:
    r"""Divide by the accumulated size of gradient differences, then take a proximal step in that metric.

    .. math:: w^n = \varepsilon + \sqrt{\sum_{k \le n} |g^k - g^{k-1}|^2}, \quad g^0 = 0, \qquad
              x^{n+1} = \text{prox}^{w^n / \text{lr}}_\varphi (x^n - \text{lr}\, g^n / w^n)

    A drop-in replacement of `optax.adagrad`. Its advantage, a wider range of good learning rates, belongs to full batches and
    low noise: differences of independent noise are larger than the noise by sqrt(2), and steps end up that much smaller.

    Parameters
    ----------
    learning_rate : float or schedule
        The paper's eta.
    eps, blocks, accumulator_dtype, decay
        As for `scale_by_gradient_differences`.
    penalty : Penalty, optional
        A penalty of `adagrad_diff.optax`, by its exact proximal step (see `proximal`): L1 (exact zeros), Ridge, ElasticNet,
        Box, NonNegative, GroupL2. With a penalty, `update` needs the parameters.

    Returns
    -------
    optax.GradientTransformationExtraArgs

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from adagrad_diff.optax import adagrad_diff
    >>> optimizer = adagrad_diff(learning_rate=1.0)
    >>> x = jnp.array([3.0, -4.0])
    >>> state = optimizer.init(x)
    >>> for _ in range(200):
    ...     updates, state = optimizer.update(jax.grad(lambda x: jnp.sum(x**2))(x), state)
    ...     x = optax.apply_updates(x, updates)
    >>> bool(abs(x).max() < 1e-3)
    True

    Notes
    -----
    `jax.grad` gives the conjugate of the direction of ascent for complex parameters: conjugate it, as for every optimizer.
    """
    return _optimizer(scale_by_gradient_differences(eps, blocks, accumulator_dtype, decay), learning_rate, penalty)


def adamdiff(
    learning_rate: optax.ScalarOrSchedule,
    b1: jax.typing.ArrayLike = 0.9,
    b2: jax.typing.ArrayLike = 0.999,
    eps: jax.typing.ArrayLike = 1e-8,
    blocks: str = "element",
    accumulator_dtype: Any = None,
    penalty: Penalty | None = None,
) -> optax.GradientTransformationExtraArgs:
    r"""Adam whose second moment is that of gradient differences. An extension: the paper has no theory for it.

    .. math:: x^{n+1} = \text{prox}(x^n - \text{lr}\, \hat m / (\sqrt{\hat v} + \varepsilon))

    with the averages of `scale_by_adamdiff`.

    Parameters
    ----------
    learning_rate : float or schedule
    b1, b2 : float
        Decay of the mean and of the squares.
    eps, blocks, accumulator_dtype, penalty
        As for `adagrad_diff`.

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
    >>> state = optimizer.init(x)
    >>> for _ in range(300):
    ...     updates, state = optimizer.update(jax.grad(lambda x: jnp.sum(x**2))(x), state)
    ...     x = optax.apply_updates(x, updates)
    >>> bool(abs(x).max() < 0.1)
    True
    """
    return _optimizer(scale_by_adamdiff(b1, b2, eps, blocks, accumulator_dtype), learning_rate, penalty)


def _optimizer(
    scaling: DiagonalTransformation, learning_rate: optax.ScalarOrSchedule, penalty: Penalty | None
) -> optax.GradientTransformationExtraArgs:
    if penalty is not None:
        return proximal(scaling, learning_rate, penalty)
    return optax.chain(scaling, optax.scale_by_learning_rate(learning_rate))
