"""A constant step: proximal gradient descent. It remembers nothing."""

from dataclasses import dataclass
from typing import Any

from adagrad_diff import Rule


@dataclass(frozen=True, eq=False)
class Constant(Rule):
    blocks: Any = "all"
    memory = {}

    def learn(self, memory, now):
        """There is nothing to learn."""

    def move(self, memory, now):
        now.step[:] = now.eta
        now.point[:] = now.x - now.step * now.g
