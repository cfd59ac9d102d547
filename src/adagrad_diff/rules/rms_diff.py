"""RMSProp with differences of gradients: AdaGrad-Diff with an exponential average."""

import numpy as np

from .._check import fraction, positive
from .base import MAX_MOVE, UnscaledRule, frozen, moving_average, unbiased


@frozen
class RMSDiff(UnscaledRule):
    r"""Exponential averages of squared gradient differences, and bounded steps. There is no theory.

    .. math:: v_i^n = \beta v_i^{n-1} + (1 - \beta) \|g_i^n - g_i^{n-1}\|^2, \quad g^0 = 0, \qquad
              w_i^n = \varepsilon + \max\Big(\sqrt{\hat v_i^n},
              \frac{\|g_i^n\|}{\text{max\_move}}\Big), \quad \text{step}_i = \eta / w_i^n

    with :math:`\hat v = v / (1 - \beta^n)`: the first step is that of `AdaGradDiff`. While
    gradients stay the same, the average of differences decays, and the step would grow without end.
    So no block moves farther than max_move * eta in one iteration (before the prox).

    Parameters
    ----------
    eta, eps, blocks
        As for `AdaGradDiff`.
    beta : float
        The weight of the old average, in [0, 1).
    max_move : float
        How far a block may move in one iteration, in units of eta.

    Examples
    --------
    >>> from adagrad_diff import RMSDiff, minimize
    >>> f = lambda x: (0.5 * x @ x, x)
    >>> result = minimize(f, [3.0, -4.0], rule=RMSDiff(eta=0.01), max_iter=1000)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    `RMSProp` and `AdaGradDiff`. The prox and the bound are ours.
    """

    _constraints = {"beta": fraction, "max_move": positive}

    beta: float = 0.99
    max_move: float = MAX_MOVE

    def init(self, x, g):
        zeros = np.zeros_like(g)  # g^0 = 0
        return {"previous": zeros, "total": self.block_sums(zeros)}

    def update(self, memory, n, x, g):
        squares = self.block_sums((g - memory["previous"]) ** 2)
        total = moving_average(memory["total"], squares, self.beta)
        root = np.sqrt(unbiased(total, self.beta, n))
        least = np.sqrt(self.block_sums(g**2)) / self.max_move
        step = self.step_size(n) / (self.eps + self.spread(np.maximum(root, least)))
        return {"previous": g, "total": total}, x - step * g, step
