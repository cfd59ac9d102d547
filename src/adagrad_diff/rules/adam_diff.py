"""Adam with differences of gradients, which the paper names as future work."""

import numpy as np

from .._check import fraction, positive
from .base import MAX_MOVE, UnscaledRule, frozen, moving_average, unbiased


@frozen
class AdamDiff(UnscaledRule):
    r"""Adam with the second moment of gradient differences, and bounded steps. There is no theory.

    .. math:: m^n = \beta_1 m^{n-1} + (1 - \beta_1) g^n, \quad v_i^n = \beta_2 v_i^{n-1} + (1 -
              \beta_2) \|g_i^n - g_i^{n-1}\|^2, \qquad w_i^n = \varepsilon + \max\Big(\sqrt{\hat
              v_i^n}, \frac{\|\hat m_i^n\|}{\text{max\_move}}\Big)

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`, g^0 = 0, and
    x moves along m as in `Adam`. While gradients stay the same, the average of differences decays,
    and the step would grow without end. So no block moves farther than max_move * eta in one
    iteration (before the prox).

    Parameters
    ----------
    eta, eps, blocks
        As for `AdaGradDiff`.
    beta1, beta2 : float
        The weights of the old averages, in [0, 1).
    max_move : float
        How far a block may move in one iteration, in units of eta.

    Examples
    --------
    >>> from adagrad_diff import AdamDiff, minimize
    >>> f = lambda x: (0.5 * x @ x, x)
    >>> result = minimize(f, [3.0, -4.0], rule=AdamDiff(eta=0.1), max_iter=500)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Bojovic, Salzo, Pontil: AdaGrad-Diff: A New Version of the Adaptive
    Gradient Algorithm, the conclusion. The prox and the bound are ours.
    """

    _constraints = {"beta1": fraction, "beta2": fraction, "max_move": positive}

    beta1: float = 0.9
    beta2: float = 0.999
    max_move: float = MAX_MOVE

    def init(self, x, g):
        zeros = np.zeros_like(g)  # g^0 = 0
        return {"previous": zeros, "mean": zeros, "total": self.block_sums(zeros)}

    def update(self, memory, n, x, g):
        mean = moving_average(memory["mean"], g, self.beta1)
        squares = self.block_sums((g - memory["previous"]) ** 2)
        total = moving_average(memory["total"], squares, self.beta2)
        root, direction = np.sqrt(unbiased(total, self.beta2, n)), unbiased(mean, self.beta1, n)
        least = np.sqrt(self.block_sums(direction**2)) / self.max_move
        step = self.step_size(n) / (self.eps + self.spread(np.maximum(root, least)))
        return {"previous": g, "mean": mean, "total": total}, x - step * direction, step
