"""AdaGrad by dual averaging: steps from the first iterate along the sum of all gradients."""

import numpy as np

from .base import UnscaledRule, frozen


@frozen
class DualAveraging(UnscaledRule):
    r"""AdaGrad's metric, and a step from the first iterate along the sum of all gradients.

    .. math:: w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k\|^2}, \qquad x^{n+1} =
              \text{argmin}_x\ \eta \Big\langle \sum_{k=1}^n g^k, x \Big\rangle + \eta n \varphi(x)
              + \tfrac12 \langle x - x^1, W_n (x - x^1) \rangle

    That is the prox, with n times the step, at :math:`x^1 - \eta W_n^{-1} \sum_k g^k`. It gives
    more zeros than `AdaGrad` does. The reference proves convergence with the proximal step for the
    average of the iterates, if eps is at least as large as every entry of the gradients.

    Parameters
    ----------
    eta, eps, blocks
        As for `AdaGradDiff`; eps is the reference's delta.

    Examples
    --------
    >>> from adagrad_diff import L1, DualAveraging, minimize
    >>> f = lambda x: (0.5 * x @ x, x)
    >>> result = minimize(f, [3.0, -4.0], L1(0.1), DualAveraging(eta=5.0), max_iter=500)
    >>> bool(result.fun_best < 1e-2)
    True

    References
    ----------
    Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and
    stochastic optimization, 2011, equation (3).
    """

    def init(self, x, g):
        zeros = np.zeros_like(g)
        return {"origin": x, "sum": zeros, "total": self.block_sums(zeros)}

    def update(self, memory, n, x, g):
        total, gradients = memory["total"] + self.block_sums(g**2), memory["sum"] + g
        step = self.step_size(n) / (self.eps + self.spread(np.sqrt(total)))
        new = {"sum": gradients, "total": total}
        return memory | new, memory["origin"] - step * gradients, n * step
