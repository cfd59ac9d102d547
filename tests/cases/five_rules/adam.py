"""Adam (Kingma and Ba), with the prox in its metric: a mean of gradients, and one of their squares."""

from dataclasses import dataclass

import numpy as np

from adagrad_diff import Rule
from adagrad_diff.rules import BLOCK, POINT


@dataclass(frozen=True, eq=False)
class Adam(Rule):
    beta1: float = 0.9
    beta2: float = 0.999
    memory = {"mean": POINT, "square": BLOCK}

    def learn(self, memory, now):
        memory.mean = self.beta1 * memory.mean + (1 - self.beta1) * now.g
        memory.square = self.beta2 * memory.square + (1 - self.beta2) * now.sums(now.g**2)

    def move(self, memory, now):
        square = memory.square / (1 - self.beta2**now.n)
        now.step[:] = now.spread(now.eta / (np.sqrt(square) + self.eps))
        now.point[:] = now.x - now.step * memory.mean / (1 - self.beta1**now.n)
