"""AdaGrad-Diff: the metric of Algorithm 1."""

import numpy as np

from .base import Rule, frozen


@frozen
class AdaGradDiff(Rule):
    r"""Accumulate squared differences of successive gradients.

    .. math:: w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k - g_i^{k-1}\|^2}, \quad g^0 = 0,
              \qquad \text{step}_i = \eta\, \text{scale}_i / w_i^n

    While gradients stay the same, the step stays large. When they fluctuate, it shrinks. For
    constant eta, the paper proves that F(x_avg) converges to the optimum, for nonsmooth f if the
    iterates stay bounded. For smooth f, it proves that the iterates converge.

    Parameters
    ----------
    eta : float, array or callable
        The step size: a positive number, one per trajectory, or a function n -> eta_n of the
        iteration n = 1, 2, ...
    eps : float
        Added to every weight, outside the root.
    blocks : None, "element", "all", "row" or array of int
        The blocks of x that share one weight; see `adagrad_diff.rules.block_labels`.
    scale : array, optional
        One positive factor per coordinate, a fixed diagonal geometry. For single coordinates,
        scale_i is the change of variables x_i = scale_i y_i: 1 / (size of column i) makes unscaled
        data behave like scaled data.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, minimize
    >>> f = lambda x: (0.5 * x @ x, x)
    >>> result = minimize(f, [3.0, -4.0], rule=AdaGradDiff(eta=1.0), max_iter=200)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Bojovic, Salzo, Pontil: AdaGrad-Diff: A New Version of the Adaptive
    Gradient Algorithm, Algorithm 1.
    """

    def init(self, x, g):
        zeros = np.zeros_like(g)  # g^0 = 0
        return {"previous": zeros, "total": self.block_sums(zeros)}

    def update(self, memory, n, x, g):
        # g is u^n in the paper's Algorithm 1, whose line numbers follow.
        total = memory["total"] + self.block_sums((g - memory["previous"]) ** 2)
        w = self.eps + np.sqrt(total)  # line 5: one weight per block
        step = self.step_size(n) / self.spread(w)  # line 6: the diagonal of eta W_n^{-1}
        return {"previous": g, "total": total}, x - step * g, step  # line 7 without the prox

    def accumulated(self, memory):
        return memory["total"]
