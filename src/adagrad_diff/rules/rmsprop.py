"""RMSProp: AdaGrad with an exponential average of squared gradients."""

from typing import Any

import numpy as np

from .._check import fraction
from .base import Rule, frozen, moving_average


@frozen
class RMSProp(Rule):
    r"""Exponential averages of squared gradients.

    .. math:: v_i^n = \beta v_i^{n-1} + (1 - \beta) \|g_i^n\|^2, \qquad \text{step}_i = \eta\,
              \text{scale}_i / (\varepsilon + \sqrt{v_i^n})

    The prox is our extension: the reference has f alone, and no theory. Steps do not shrink, so
    with a constant eta it only reaches a neighborhood of a solution.

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`. Published: 0.01, the default of PyTorch.
    beta : float
        The weight of the old average, in [0, 1): PyTorch's alpha.
    eps, blocks, scale
        As for `AdaGradDiff`.

    Examples
    --------
    >>> from adagrad_diff import RMSProp, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=RMSProp(), max_iter=1000)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Tieleman, Hinton: Lecture 6.5 of Neural networks for machine learning,
    2012. The constants are those of torch.optim.RMSprop.
    """

    published = 0.01
    _constraints = {"beta": fraction}

    eta: Any = 0.01
    beta: float = 0.99

    def init(self, x, g):
        return {"total": self.block_sums(np.zeros_like(g))}

    def update(self, memory, n, x, g):
        total = moving_average(memory["total"], self.block_sums(g**2), self.beta)
        step = self.step_size(n) / (self.eps + self.spread(np.sqrt(total)))
        return {"total": total}, x - step * g, step
