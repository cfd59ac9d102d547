"""DoG: distance over gradients. There is no step size."""

from typing import Any

import numpy as np

from .._check import positive
from .base import StepSizeFreeRule, frozen


@frozen
class DoG(StepSizeFreeRule):
    r"""Steps of the distance from the start over the root of the sum of squared gradients.

    .. math:: \text{step}^n = \frac{\bar r_n}{\sqrt{\varepsilon + \sum_{k=1}^n \|g^k\|^2}}, \qquad
              \bar r_n = \max\Big(\rho (1 + \|x^1\|), \max_{k \le n} \|x^k - x^1\|\Big)

    The answer is `result.x_avg`, :math:`\bar x_t = (1 - c_t) \bar x_{t-1} + c_t x^{t+1}` with
    :math:`c_t = (1 + \gamma) / (t + \gamma)`, t = 1, 2, ...: an average with weights that grow like
    :math:`t^\gamma`. The last iterate may be much worse. The reference proves convergence for
    projections onto sets; other penalties are our extension.

    Parameters
    ----------
    eps : float
        Inside the root.
    blocks
        "all", or blocks as for `AdaGradDiff`: each then has its own distance and its own gradients,
        which is the reference's LDoG.
    first : float
        rho: the first step has about this length, relative to 1 + ||x||.
    gamma : float
        The power of the average's weights.

    Examples
    --------
    >>> from adagrad_diff import DoG, minimize
    >>> f = lambda x: (abs(x).sum(), (x > 0) * 2.0 - 1.0)
    >>> result = minimize(f, [3.0, -4.0], rule=DoG(), max_iter=2000)
    >>> bool(abs(result.x_avg).sum() < 0.02)
    True

    References
    ----------
    Ivgi, Hinder, Carmon: DoG is SGD's best friend: a parameter-free dynamic
    step size schedule, 2023. Shamir, Zhang: Stochastic gradient descent for non-smooth
    optimization, 2013 (the average).
    """

    _constraints = {"first": positive, "gamma": positive}

    blocks: Any = "all"
    first: float = 1e-6
    gamma: float = 8.0

    def init(self, x, g):
        far = self.first * (1.0 + np.sqrt(self.block_sums(x**2)))
        return {"total": np.full_like(far, self.eps), "far": far, "origin": x}

    def update(self, memory, n, x, g):
        total = memory["total"] + self.block_sums(g**2)
        far = np.maximum(memory["far"], np.sqrt(self.block_sums((x - memory["origin"]) ** 2)))
        step = self.spread(far / np.sqrt(total))
        new = {"total": total, "far": far}
        return memory | new, x - step * g, step

    @property
    def average_power(self):
        return self.gamma
