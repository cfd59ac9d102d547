"""Metrics that are almost AdaGrad-Diff's. The statements about steps hold for them; the identity of w must not."""

from dataclasses import dataclass

import numpy as np

from adagrad_diff import AdaGradDiff


@dataclass(frozen=True, eq=False)
class WithoutSquare(AdaGradDiff):
    """v_i = sqrt(sum |g_i^k - g_i^{k-1}|), as Appendix A defines it."""

    def update(self, metric, g, g_prev):
        metric.total += np.abs(g - g_prev)


@dataclass(frozen=True, eq=False)
class Lagging(AdaGradDiff):
    """W_n is made from g^1 ... g^{n-1}; the first step uses g^1, as there is nothing before it."""

    def update(self, metric, g, g_prev):
        if not metric.total.any():
            super().update(metric, g, g_prev)
            return
        if hasattr(metric, "late"):
            super().update(metric, *metric.late)
        metric.late = g.copy(), g_prev.copy()
