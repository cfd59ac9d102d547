"""Adam: steps along an average of gradients, divided by the root of an average of their squares."""

from typing import Any

import numpy as np

from .._check import fraction
from .base import UnscaledRule, frozen, moving_average, unbiased


@frozen
class Adam(UnscaledRule):
    r"""Average gradients and their squares, with a correction for the start at zero.

    .. math:: m^n = \beta_1 m^{n-1} + (1 - \beta_1) g^n, \quad v_i^n = \beta_2 v_i^{n-1} + (1 -
              \beta_2) \|g_i^n\|^2, \qquad w_i^n = \varepsilon + \sqrt{\hat v_i^n}, \quad x^{n+1} =
              \text{prox}^{W_n}_{\eta\varphi}(x^n - \eta W_n^{-1} \hat m^n)

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`. The prox is
    our extension: the reference has f alone, and its proof has a gap that decreasing steps do not
    close.

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`. Published: 0.001.
    eps, blocks
        As for `AdaGradDiff`.
    beta1, beta2 : float
        The weights of the old averages, in [0, 1).

    Examples
    --------
    >>> from adagrad_diff import Adam, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=Adam(eta=0.1), max_iter=500)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Kingma, Ba: Adam: a method for stochastic optimization, 2015. Reddi, Kale,
    Kumar: On the convergence of Adam and beyond, 2018.
    """

    published = 1e-3
    _constraints = {"beta1": fraction, "beta2": fraction}

    eta: Any = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999

    def init(self, x, g):
        zeros = np.zeros_like(g)
        return {"mean": zeros, "total": self.block_sums(zeros)}

    def update(self, memory, n, x, g):
        mean = moving_average(memory["mean"], g, self.beta1)
        total = moving_average(memory["total"], self.block_sums(g**2), self.beta2)
        root = np.sqrt(unbiased(total, self.beta2, n))
        step = self.step_size(n) / (self.eps + self.spread(root))
        return {"mean": mean, "total": total}, x - unbiased(step * mean, self.beta1, n), step
