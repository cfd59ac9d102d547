"""Metrics that are almost AdaGrad-Diff's. The statements about steps hold for them; the identity of w must not."""

from dataclasses import dataclass

import numpy as np

from adagrad_diff import AdaGradDiff


@dataclass(frozen=True, eq=False)
class WithoutSquare(AdaGradDiff):
    """v_i = sqrt(sum |g_i^k - g_i^{k-1}|), as Appendix A defines it."""

    def update(self, memory, n, x, g):
        total = memory["total"] + self.block_sums(np.abs(g - memory["previous"]))
        step = self.step_size(n) / (self.eps + self.spread(np.sqrt(total)))
        return {"previous": g, "total": total}, x - step * g, step


@dataclass(frozen=True, eq=False)
class Lagging(AdaGradDiff):
    """W_n is made from g^1 ... g^{n-1}; the first step uses g^1, as there is nothing before it."""

    def init(self, x, g):
        return super().init(x, g) | {"late": np.zeros_like(g)}

    def update(self, memory, n, x, g):
        change = (g - memory["previous"]) ** 2
        total = memory["total"] + self.block_sums(change if n == 1 else memory["late"])
        late = np.zeros_like(change) if n == 1 else change
        step = self.step_size(n) / (self.eps + self.spread(np.sqrt(total)))
        return {"previous": g, "total": total, "late": late}, x - step * g, step
