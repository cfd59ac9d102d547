"""The points and steps with which a penalty is tried."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ..penalties import Penalty

POINT_SCALES = (1.0, 10.0, 0.1, 3.0)  # of the points
POINT_STEPS = (0.05, 1.0, 20.0)


class Points:
    """A penalty, random points (some tied, and zero), and steps that it accepts."""

    def __init__(self, penalty: Penalty, size: int, rng: np.random.Generator):
        self.penalty, self.size, self.rng = penalty, size, rng
        points = [scale * rng.standard_normal(size) for scale in POINT_SCALES]
        self.points = [*points, np.round(points[0]), np.zeros(size)]

    def one(self, step: float) -> np.ndarray:
        """The same step for all coordinates, as the solver hands it over: a penalty for one step gets just one."""
        return np.full(1 if self.penalty.accepts == "scalar" else self.size, step)

    def steps(self) -> np.ndarray:
        """Of all kinds that the penalty accepts, the one that differs most."""
        if self.penalty.accepts == "diagonal":
            return 10.0 ** self.rng.uniform(-2, 2, self.size)
        labels = self._blocks()
        return (
            np.full(self.size, 0.3)
            if labels is None
            else (10.0 ** self.rng.uniform(-2, 2, labels.max() + 1))[labels]
        )

    def _blocks(self) -> np.ndarray | None:
        """Blocks of coordinates that may have steps of their own, if a few tries find any."""
        if self.penalty.accepts == "block":
            for count in range(min(self.size, 6), 1, -1):
                labels = np.sort(np.arange(self.size) % count)
                try:
                    self.penalty.check_metric(labels, False)
                except ValueError:
                    continue
                return labels
        return None

    def prox(self, z: np.ndarray, step: Any) -> np.ndarray:
        """As the solver calls it: a penalty for one step gets just one."""
        one = self.penalty.accepts == "scalar" and np.ndim(step)
        return self.penalty.prox(z.copy(), step[:1].copy() if one else np.copy(step))

    @cached_property
    def inside(self) -> list[np.ndarray]:
        """Points of the domain."""
        return [
            self.penalty.prox(z.copy(), self.one(step))
            for z, step in product(self.points, POINT_STEPS[:2])
        ]
