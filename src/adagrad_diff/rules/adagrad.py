"""AdaGrad with a prox: the baseline of the paper."""

import numpy as np

from .base import Rule, frozen


@frozen
class AdaGrad(Rule):
    r"""Accumulate squared gradients.

    .. math:: w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k\|^2}, \qquad \text{step}_i = \eta\,
              \text{scale}_i / w_i^n

    Parameters are those of `AdaGradDiff`. The reference proves regret bounds with the proximal
    step.

    Examples
    --------
    >>> from adagrad_diff import AdaGrad, minimize
    >>> f = lambda x: (0.5 * x @ x, x)
    >>> result = minimize(f, [3.0, -4.0], rule=AdaGrad(eta=1.0), max_iter=200)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and
    stochastic optimization, 2011.
    """

    def init(self, x, g):
        return {"total": self.block_sums(np.zeros_like(g))}

    def update(self, memory, n, x, g):
        total = memory["total"] + self.block_sums(g**2)
        step = self.step_size(n) / (self.eps + self.spread(np.sqrt(total)))
        return {"total": total}, x - step * g, step

    def accumulated(self, memory):
        return memory["total"]
