"""AGD: Adam with differences of mean gradients, and weights with a floor."""

from typing import Any

import numpy as np

from .._check import fraction
from .base import UnscaledRule, frozen, moving_average, unbiased


@frozen
class AGD(UnscaledRule):
    r"""Adam with the second moment of differences of mean gradients, and a floor under the weights.

    .. math:: m^n = \beta_1 m^{n-1} + (1 - \beta_1) g^n, \quad s^n = \hat m^n - \hat m^{n-1}, \quad
              v_i^n = \beta_2 v_i^{n-1} + (1 - \beta_2) \|s_i^n\|^2, \qquad
              w_i^n = \max\big(\sqrt{\hat v_i^n}, \varepsilon\big)

    with :math:`\hat m = m / (1 - \beta_1^n)`, :math:`\hat m^0 = 0`, :math:`\hat v = v / (1 -
    \beta_2^n)`, and x moves along :math:`\hat m` as in `Adam`. Where the floor is larger, this is
    gradient descent with momentum. The reference analyzes f without a penalty; the prox is
    our extension.

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`. Published: 0.001.
    eps : float
        The floor, the reference's delta.
    blocks
        As for `AdaGradDiff`.
    beta1, beta2 : float
        The weights of the old averages, in [0, 1).

    Examples
    --------
    >>> from adagrad_diff import AGD, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=AGD(eta=0.1), max_iter=500)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Yue, Ye, Jiang, Liu, Zhang: AGD: an auto-switchable optimizer using stepwise gradient difference
    for preconditioning matrix, 2023, arXiv 2312.01658, and the authors' code.
    """

    published = 1e-3
    _constraints = {"beta1": fraction, "beta2": fraction}

    eta: Any = 1e-3
    eps: float = 1e-5
    beta1: float = 0.9
    beta2: float = 0.999

    def init(self, x, g):
        zeros = np.zeros_like(g)
        return {"previous": zeros, "mean": zeros, "total": self.block_sums(zeros)}

    def update(self, memory, n, x, g):
        mean = moving_average(memory["mean"], g, self.beta1)
        direction = unbiased(mean, self.beta1, n)
        squares = self.block_sums((direction - memory["previous"]) ** 2)
        total = moving_average(memory["total"], squares, self.beta2)
        root = np.sqrt(unbiased(total, self.beta2, n))
        step = self.step_size(n) / self.spread(np.maximum(root, self.eps))
        return {"previous": direction, "mean": mean, "total": total}, x - step * direction, step
