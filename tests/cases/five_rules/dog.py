"""DoG (Ivgi, Hinder, Carmon): distance over gradients. There is no step size."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adagrad_diff import AdaGrad
from adagrad_diff.rules import BLOCK, NUMBER, POINT


def norm(x):
    return np.sqrt((x * x).sum(axis=0))


@dataclass(frozen=True, eq=False)
class DoG(AdaGrad):
    eta: None = field(default=None, init=False)
    blocks: Any = field(default="all", init=False)
    memory = {"total": BLOCK, "first": POINT, "far": NUMBER}

    def begin(self, memory, now):
        memory.first, memory.far = now.x, 1e-6 * (1 + norm(now.x))

    def learn(self, memory, now):
        super().learn(memory, now)
        memory.far = np.maximum(memory.far, norm(now.x - memory.first))

    def move(self, memory, now):
        now.eta[:] = memory.far
        super().move(memory, now)
