"""UniAdaGrad: optimistic follow-the-regularized-leader with weights from differences of gradients."""

import numpy as np

from .base import AveragingRule, frozen


@frozen
class UniAdaGrad(AveragingRule):
    r"""AdaGrad-Diff's weights with growing factors, in an accelerated method that averages.

    .. math:: w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n k^2 \|g_i^k - g_i^{k-1}\|^2}, \quad g^0 = 0,
              z^{n+1} = \text{argmin}_z\ \Big\langle \sum_{k=1}^n k g^k + (n + 1) g^n, z \Big\rangle
              + A_{n+1} \varphi(z)
              + \frac1{2\eta} \sum_{k=1}^n \big\langle z - z^k, (W_k - W_{k-1})(z - z^k) \big\rangle

    with :math:`z^1 = x^1`, :math:`A_n = 1 + \dots + n`, and :math:`g^n` the gradient at
    :math:`x^n`, the average of :math:`z^1, \dots, z^n` with weights 1, ..., n. It is the closest
    relative of AdaGrad-Diff. For convex f on a bounded set the reference proves the rates
    :math:`1/n^2` if f is smooth and :math:`1/\sqrt n` otherwise, without knowing which. Its penalty
    is the indicator function of a set; the term of other penalties is our extension. The answer is
    the last iterate :math:`x^n`, an average that includes :math:`x^1`: start where F is finite.

    Parameters
    ----------
    eta, eps, blocks
        As for `AdaGradDiff`. In the reference eta is R / 2 for a set of size R, and eps is zero.

    Examples
    --------
    >>> from adagrad_diff import UniAdaGrad, minimize
    >>> rule = UniAdaGrad(eta=5.0)
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=rule, max_iter=300)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Joulani, Raj, Gyorgy, Szepesvari: A simpler approach to accelerated optimization: iterative
    averaging meets optimism, 2020.
    """

    def init(self, x, g):
        zeros = np.zeros_like(g)  # g^0 = 0
        none = self.block_sums(zeros)
        return {"z": x, "center": x, "previous": zeros, "sum": zeros, "total": none, "weight": none}

    def update(self, memory, n, x, g):
        total = memory["total"] + n**2 * self.block_sums((g - memory["previous"]) ** 2)
        weight, gradients = self.eps + np.sqrt(total), memory["sum"] + n * g
        # The center is the average of z^1, ..., z^n with weights W_k - W_{k-1}.
        share = self.spread(1.0 - memory["weight"] / weight)
        center = memory["center"] + share * (memory["z"] - memory["center"])
        step = self.step_size(n) / self.spread(weight)
        new = {"center": center, "previous": g, "sum": gradients, "total": total, "weight": weight}
        point = center - step * (gradients + (n + 1) * g)
        return memory | new, point, (n + 1) * (n + 2) / 2 * step

    def mix(self, memory, n, x, z):
        return memory | {"z": z}, x + 2.0 / (n + 2) * (z - x)
