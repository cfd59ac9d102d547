"""AdaPEG: adaptive past extragradient, which is optimistic dual averaging."""

from typing import Any

import numpy as np

from .base import UnscaledRule, frozen


@frozen
class AdaPEG(UnscaledRule):
    r"""Dual averaging with AdaGrad-Diff's weights; the last gradient predicts the next.

    .. math:: w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k - g_i^{k-1}\|^2}, \quad g^0 = 0,
              x^{n+1} = \text{argmin}_x\ \eta \Big\langle \sum_{k=2}^n g^k + g^n, x \Big\rangle
              + \eta n \varphi(x) + \tfrac12 \langle x - x^1, W_n (x - x^1) \rangle

    This is the past extragradient method for unbounded domains, solved for x: the reference takes
    its extragradient steps from :math:`z^n = x^1 - \eta W_n^{-1} \sum_{k=2}^n g^k`. It has one
    gradient per iteration. For monotone variational inequalities, so also for minimization, the
    reference proves that the average of the iterates (`result.x_avg`) converges like 1/n if f is
    smooth and like :math:`1/\sqrt n` otherwise. We have the formulas from an implementation by
    others, not from the paper. The term of the penalty, as in `DualAveraging`, is our extension,
    and so is the first weight: the reference has a parameter there.

    Parameters
    ----------
    eta, eps
        As for `AdaGradDiff`.
    blocks
        "all", as in the reference's main form, or blocks as for `AdaGradDiff`.

    Examples
    --------
    >>> from adagrad_diff import AdaPEG, minimize
    >>> rule = AdaPEG(eta=5.0)
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=rule, max_iter=300)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Ene, Nguyen: Adaptive and universal algorithms for variational inequalities with optimal
    convergence, 2020, arXiv 2010.07799.
    """

    blocks: Any = "all"

    def init(self, x, g):
        zeros = np.zeros_like(g)  # g^0 = 0
        return {"origin": x, "previous": zeros, "sum": -g, "total": self.block_sums(zeros)}

    def update(self, memory, n, x, g):
        total = memory["total"] + self.block_sums((g - memory["previous"]) ** 2)
        gradients = memory["sum"] + g  # g^1 is a prediction only, so the sum starts at -g^1
        step = self.step_size(n) / (self.eps + self.spread(np.sqrt(total)))
        new = {"previous": g, "sum": gradients, "total": total}
        return memory | new, memory["origin"] - step * (gradients + g), n * step
