"""Metrics that are almost AdaGrad-Diff's. The statements about steps hold for them; the identity of w must not."""

from dataclasses import dataclass

import numpy as np

from adagrad_diff import AdaGradDiff
from adagrad_diff.rules import BLOCK, POINT


@dataclass(frozen=True, eq=False)
class WithoutSquare(AdaGradDiff):
    """v_i = sqrt(sum |g_i^k - g_i^{k-1}|), as Appendix A defines it."""

    def learn(self, memory, now):
        memory.total += np.abs(now.g - now.g_prev)


@dataclass(frozen=True, eq=False)
class Lagging(AdaGradDiff):
    """W_n is made from g^1 ... g^{n-1}; the first step uses g^1, as there is nothing before it."""

    memory = {"total": BLOCK, "late": POINT}

    def learn(self, memory, now):
        change = (now.g - now.g_prev) ** 2
        memory.total += now.sums(change if now.n == 1 else memory.late)
        memory.late = 0.0 if now.n == 1 else change
