"""Dual averaging with AdaGrad's metric (Duchi, Hazan, Singer): from x^1 along all gradients; the prox has n times the step."""

from dataclasses import dataclass

import numpy as np

from adagrad_diff import AdaGrad
from adagrad_diff.rules import BLOCK, POINT


@dataclass(frozen=True, eq=False)
class DualAveraging(AdaGrad):
    memory = {"total": BLOCK, "first": POINT, "sum": POINT}

    def begin(self, memory, now):
        memory.first = now.x

    def learn(self, memory, now):
        super().learn(memory, now)
        memory.sum += now.g

    def move(self, memory, now):
        step = now.spread(now.eta / (self.eps + np.sqrt(memory.total)))
        now.point[:] = memory.first - step * memory.sum
        now.step[:] = now.n * step
