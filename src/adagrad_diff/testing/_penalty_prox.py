"""Is the prox of a penalty the one of its value?"""

from __future__ import annotations

from itertools import product

import numpy as np

from ._penalty_points import POINT_STEPS, Points
from ._report import NotTried, Report, show

TRIED_DISTANCES = (0.3, 1e-3)  # distances from the prox at which other points are tried
ROUNDING = 1e-6  # of z and x, relative: what the prox of an iterative penalty may be off by
OUTSIDE = 1e-7  # how far from a set, relative to its size, a point may be that counts as inside


def check_prox(report: Report, points: Points) -> None:
    """Look at the variational inequality that makes a point the prox, in the metrics that the penalty accepts."""
    trial = ProxTrial(points)
    report.look("The value is convex between random points.", trial.is_convex)
    if report.look("With one step, the prox is the minimiser it has to be.", trial.one_step):
        report.look(
            "With steps that differ, the prox is the minimiser it has to be.", trial.many_steps
        )
    report.look("The prox does not move points farther apart.", trial.firmly_nonexpansive)


class ProxTrial:
    """Each method returns what is wrong, or None."""

    def __init__(self, points: Points):
        self.at = points

    def is_convex(self) -> str | None:
        points = self.at.inside
        values = [float(self.at.penalty.value(x)) for x in points]
        for i, k in self.at.rng.integers(0, len(points), (60, 2)):
            middle, mean = (
                float(self.at.penalty.value((points[i] + points[k]) / 2)),
                (values[i] + values[k]) / 2,
            )
            if not middle <= mean + 1e-7 * (abs(values[i]) + abs(values[k])):
                return (
                    f"The value is not convex: in the middle of x = {show(points[i])} and y = {show(points[k])} it is "
                    f"{middle:.6g}, more than {mean:.6g}, the mean of those at the ends."
                )
        return None

    def one_step(self) -> str | None:
        for z, step in product(self.at.points, POINT_STEPS):
            if (fault := self._condition(z, np.full(self.at.size, step))) is not None:
                return fault
        return None

    def many_steps(self) -> str | None:
        if self.at.penalty.accepts == "scalar" or self.at.size == 1:
            raise NotTried(
                "It is for one step at a time: use it with blocks='all', or in NumericalProx."
            )
        for z in self.at.points:
            if (fault := self._condition(z, self.at.steps())) is not None:
                return f"{fault[:-1]}, with steps that differ. If the formula is for a single step, say accepts = 'scalar'."
        return None

    def _condition(self, z: np.ndarray, step: np.ndarray) -> str | None:
        """u = (z - x) / step is a subgradient of the value at x = prox(z): value(y) >= value(x) + <u, y - x> for all y."""
        x = self.at.prox(z, step)
        u, value = (z - x) / step, float(self.at.penalty.value(x))
        for y in self._others(x, step):
            other, rise = float(self.at.penalty.value(y)), float(u @ (y - x))
            slack = ROUNDING * float(
                np.sum((np.abs(z) + np.abs(x)) * np.abs(y - x) / step)
            ) + 1e-9 * (abs(value) + abs(other))
            slack += OUTSIDE * float(np.abs(u).sum() * max(np.abs(x).max(), np.abs(y).max()))
            if other < value + rise - slack:
                terms = float(np.sum((y - x) * (y - x) / step)) / 2
                smaller = f"at y = {show(y)} it is smaller by {value + rise - other - terms:.3g}"
                what = (
                    smaller if value + rise - other > terms else f"towards y = {show(y)} it falls"
                )
                return (
                    "The prox is not the minimiser of value(x) + sum((x - z)**2 / (2 step)): for "
                    f"z = {show(z)} and step = {show(step)} it is x = {show(x)}, but {what}."
                )
        return None

    def _others(self, x: np.ndarray, step: np.ndarray) -> list[np.ndarray]:
        """Points of the domain around x and far from it: along axes, in random directions, and what the prox makes of these."""
        moves = np.concatenate(
            [
                np.eye(self.at.size)[self.at.rng.permutation(self.at.size)[:6]],
                self.at.rng.standard_normal((3, self.at.size)),
            ]
        )
        size = float(np.abs(x).max()) or 1.0
        around = [
            x + sign * near * size * move
            for near in TRIED_DISTANCES
            for move in moves
            for sign in (1.0, -1.0)
        ]
        pulled = [self.at.prox(y, 1e-3 * step) for y in around]
        return [
            y
            for y in (*around, *pulled, *self.at.points, *self.at.inside)
            if np.isfinite(self.at.penalty.value(y))
        ]

    def firmly_nonexpansive(self) -> str | None:
        for _ in range(20):
            step = self.at.steps()
            z = self.at.points[self.at.rng.integers(len(self.at.points))]
            y = z + self.at.rng.choice([0.01, 1.0]) * self.at.rng.standard_normal(self.at.size)
            p, q = self.at.prox(z, step), self.at.prox(y, step)
            moved, along = (
                float(np.sum((p - q) ** 2 / step)),
                float(np.sum((p - q) * (z - y) / step)),
            )
            slack = ROUNDING * float(
                np.sum((np.abs(z) + np.abs(y) + np.abs(p) + np.abs(q)) * np.abs(p - q) / step)
            )
            slack += OUTSIDE * float(
                np.abs((z - y) / step).sum() * max(np.abs(p).max(), np.abs(q).max())
            )
            if moved > along + slack:
                return (
                    f"The prox moves points farther apart, which that of a convex function does not: with step = {show(step)}, "
                    f"z = {show(z)} and {show(y)} go to {show(p)} and {show(q)}."
                )
        return None
