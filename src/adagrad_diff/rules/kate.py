"""KATE: AdaGrad without the root, with a numerator that compensates for it."""

from typing import Any

import numpy as np

from .._check import nonnegative
from .base import UnscaledRule, frozen


@frozen
class KATE(UnscaledRule):
    r"""A version of AdaGrad that is invariant to the scales of columns (linear models, delta = 0).

    .. math:: b_n^2 = b_{n-1}^2 + g_n^2, \quad m_n^2 = m_{n-1}^2 + \delta g_n^2 + \frac{g_n^2}{b_n^2
              + \varepsilon}, \qquad w^n = \frac{b_n^2 + \varepsilon}{m_n}, \quad \text{step} = \eta
              / w^n

    The prox is our extension: the reference has f alone. A coordinate whose gradients have all been
    zero has weight 1. The formula gives an infinite weight, with which the prox would never change
    it.

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`: the reference's beta. Published: 0.001.
    delta : float
        The reference's eta, 0.9; at least 0.
    eps, blocks
        As for `AdaGradDiff`, but eps is added to squares.

    Examples
    --------
    >>> from adagrad_diff import KATE, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=KATE(eta=1.0), max_iter=200)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Choudhury, Tupitsa, Loizou, Horvath, Takac, Gorbunov: Remove that square
    root: a new efficient scale-invariant version of AdaGrad, 2024, and the authors' code.
    """

    published = 1e-3
    _constraints = {"delta": nonnegative}

    eta: Any = 1e-3
    delta: float = 0.9

    def init(self, x, g):
        zeros = self.block_sums(np.zeros_like(g))
        return {"total": zeros, "ratios": zeros}

    def update(self, memory, n, x, g):
        squares = self.block_sums(g**2)
        total = memory["total"] + squares  # b_n^2
        ratios = memory["ratios"] + self.delta * squares + squares / (total + self.eps)  # m_n^2
        inverse = np.where(ratios > 0, np.sqrt(ratios) / (total + self.eps), 1.0)  # 1 / w^n
        step = self.step_size(n) * self.spread(inverse)
        return {"total": total, "ratios": ratios}, x - step * g, step
