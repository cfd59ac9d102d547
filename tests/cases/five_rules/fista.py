"""FISTA (Beck, Teboulle) with backtracking and restart (O'Donoghue, Candes). There is no step size.

It takes gradients at y, which is ahead of x: every other iteration goes to y, remembers what it sees and is rejected. The one
after it steps from y, and is rejected if the quadratic model does not bound the loss there; then the step is halved.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adagrad_diff import Rule
from adagrad_diff.rules import NUMBER, POINT


def dot(x, y):
    return (x * y).sum(axis=0)


@dataclass(frozen=True, eq=False)
class FISTA(Rule):
    eta: None = field(default=None, init=False)
    blocks: Any = field(default="all", init=False)
    memory = {"y": POINT, "g": POINT, "f": NUMBER, "step": NUMBER, "t": NUMBER, "looking": NUMBER}

    def begin(self, memory, now):
        memory.y, memory.step, memory.t, memory.looking = now.x, 1.0, 1.0, 1.0

    def learn(self, memory, now):
        """What is learned is learned in `accepts`."""

    def move(self, memory, now):
        now.step[:] = memory.step
        now.prox = not memory.looking.any()
        now.point[:] = memory.y - memory.step * memory.g if now.prox else memory.y

    def accepts(self, memory, now):
        if memory.looking.any():
            memory.g, memory.f, memory.looking = now.g_next, now.f_next, 0.0
            return False
        change = now.x_next - memory.y
        model = memory.f + dot(memory.g, change) + dot(change, change) / (2 * memory.step)
        good = now.f_next <= model + 1e-12 * np.abs(memory.f)
        moved = now.x_next - now.x
        ahead = dot(memory.y - now.x_next, moved) <= 0  # or the momentum leads uphill: begin anew
        t = np.where(ahead, (1 + np.sqrt(1 + 4 * memory.t**2)) / 2, 1.0)
        y = now.x_next + np.where(ahead, (memory.t - 1) / t, 0.0) * moved
        memory.y, memory.t = np.where(good, y, memory.y), np.where(good, t, memory.t)
        memory.step, memory.looking = np.where(good, memory.step, memory.step / 2), 1.0
        return good
