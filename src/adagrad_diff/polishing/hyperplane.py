"""A quadratic function over a box cut by a hyperplane: the dual of a support vector machine with a bias."""

from __future__ import annotations

import numpy as np

from ..losses import Quadratic
from ..penalties import Penalty
from . import kernels
from .loss_model import dense_matrix
from .newton_small import solve_symmetric
from .solver import Outcome, Solver, Stop

PLANE_ROUNDS = 40
PAIR_STEPS = 20  # per coordinate and round


class Plane(Solver):
    """Pairs of coordinates find those that are free, one factorisation their values: sum(y) is given, y = a x."""

    def __init__(
        self,
        loss: Quadratic,
        penalty: Penalty,
        lower: np.ndarray,
        upper: np.ndarray,
        a: np.ndarray,
    ):
        self.loss, self.penalty, self.a = loss, penalty, a
        one, other = a * lower, a * upper
        self.lower, self.upper = np.minimum(one, other), np.maximum(one, other)
        self._Q: np.ndarray | None = None

    def solve(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> Outcome:
        if self._Q is None:
            Q = dense_matrix(self.loss)
            self._Q = Q if (self.a == 1.0).all() else Q / np.outer(self.a, self.a)
        Q, c = self._Q, self.loss.c / self.a
        x = np.array(x, np.float64)
        y = self.a * (x if np.isfinite(self.penalty.value(x)) else self.penalty.prox(x, 1.0))
        y = np.clip(y, self.lower, self.upper)
        g = self._gradient(y, c)
        first = float(y @ (g - c))
        scale = float(np.abs(c).max() + np.abs(g).max()) or 1.0
        goal, best, reason = 1e-3 * scale, (np.inf, y), "rounding is in the way"
        enough = max(0.01 * tol, 1e-13) * scale
        rounds = 0
        while rounds < PLANE_ROUNDS:
            rounds += 1
            kernels.descend_pairs(Q, y, g, self.lower, self.upper, PAIR_STEPS * y.size, goal)
            y = self._newton(y, g)
            g = self._gradient(y, c)
            apart = self._apart(y, g)
            if not apart >= best[0]:
                best = apart, y.copy()
            if apart <= enough:
                reason = ""
                break
            if stop():
                reason = "the time was over"
                break
            goal = max(min(0.1 * goal, 0.5 * apart), 0.1 * enough)
        y = best[1]
        answer = y / self.a
        if (
            float(y @ (self._gradient(y, c) - c)) > first + 1e-14 * abs(first) and reason
        ):  # not worse than what was given
            answer = x
        free = int(((y > self.lower) & (y < self.upper)).sum())
        return Outcome(answer, None, not reason, rounds, 0, free, reason)

    def _gradient(self, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        places = np.flatnonzero(y)
        return np.asarray(y[places] @ self._Q[places] - c if places.size else -c)  # type: ignore[index]

    def _apart(self, y: np.ndarray, g: np.ndarray) -> float:
        """How much two coordinates, one of which may grow and one shrink, differ in their gradients: 0 at a minimiser."""
        grow, shrink = g[y < self.upper], g[y > self.lower]
        return max(float(shrink.max(initial=-np.inf) - grow.min(initial=np.inf)), 0.0)

    def _newton(self, y: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The minimiser on the free coordinates; those that come to a bound on the way stay there."""
        Q, y = self._Q, y.copy()
        assert Q is not None
        for _ in range(8):
            free = np.flatnonzero((y > self.lower) & (y < self.upper))
            if free.size < 2:
                return y
            rows = Q[free]
            both = solve_symmetric(rows[:, free], np.stack([-g[free], np.ones(free.size)], axis=1))
            d = both[:, 0] - both[:, 1] * (both[:, 0].sum() / both[:, 1].sum())
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(
                    d > 0,
                    (self.upper[free] - y[free]) / d,
                    np.where(d < 0, (self.lower[free] - y[free]) / d, np.inf),
                )
            t = min(float(np.nanmin(room)), 1.0)
            if not (np.isfinite(d).all() and t > 0.0):
                return y
            new = y[free] + t * d
            hit = room <= t
            new[hit] = np.where(d[hit] > 0, self.upper[free][hit], self.lower[free][hit])
            g += (new - y[free]) @ rows
            y[free] = new
            if t == 1.0 and not hit.any():
                return y
        return y
