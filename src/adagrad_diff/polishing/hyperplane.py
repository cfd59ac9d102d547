"""A quadratic function over a box cut by a hyperplane: the dual of a kernel SVM with an intercept."""

from __future__ import annotations

import numpy as np

from ..losses import Quadratic
from ..penalties import Penalty
from . import kernels
from .linear_algebra import Cholesky
from .loss_model import dense_matrix
from .solver import Outcome, Solver, Stop
from .subproblem import LEAST_PIVOT

MAX_ALTERNATIONS = 40  # of descent and Newton steps
PAIR_STEPS = 20  # of descent per coordinate and alternation
MAX_BOUND_STEPS = 8  # Newton steps of an alternation, if they end at bounds


class HyperplaneSolver(Solver):
    """Descent in pairs of coordinates identifies the free ones, Newton's method their values.

    The coordinates are y = a x, of which the sum is given.
    """

    def __init__(
        self,
        loss: Quadratic,
        penalty: Penalty,
        lower: np.ndarray,
        upper: np.ndarray,
        a: np.ndarray,
    ):
        self.penalty, self.a, self.c = penalty, a, loss.c / a
        ends = a * lower, a * upper
        self.lower, self.upper = np.minimum(*ends), np.maximum(*ends)
        Q = dense_matrix(loss)
        self.Q = Q if (a == 1.0).all() else Q / np.outer(a, a)

    def solve(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> Outcome:
        feasible = np.isfinite(self.penalty.value(x))
        y = self.a * (x if feasible else self.penalty.prox(x.astype(np.float64), 1.0))
        y = np.clip(y, self.lower, self.upper)
        g = self._gradient(y)
        value = float(y @ (g - self.c))
        scale = float(np.abs(self.c).max() + np.abs(g).max()) or 1.0
        goal, enough = 1e-3 * scale, max(0.01 * tol, 1e-13) * scale
        least, best, reason = np.inf, y, "rounding limits the accuracy"
        for rounds in range(1, MAX_ALTERNATIONS + 1):  # noqa: B007
            bounds = self.lower, self.upper
            kernels.descend_pairs(self.Q, y, g, *bounds, PAIR_STEPS * y.size, goal)
            y = self._newton(y, g)
            g = self._gradient(y)
            error = self._error(y, g)
            if not error >= least:
                least, best = error, y.copy()
            if error <= enough:
                reason = ""
                break
            if stop():
                reason = "the time was over"
                break
            goal = max(min(0.1 * goal, 0.5 * error), 0.1 * enough)
        free = int(((best > self.lower) & (best < self.upper)).sum())
        worse = float(best @ (self._gradient(best) - self.c)) > value + 1e-14 * abs(value)
        answer = np.array(x, np.float64) if worse and reason else best / self.a
        return Outcome(answer, None, not reason, rounds, 0, free, reason)

    def _gradient(self, y: np.ndarray) -> np.ndarray:
        index = np.flatnonzero(y)
        return np.asarray(y[index] @ self.Q[index] - self.c)

    def _error(self, y: np.ndarray, g: np.ndarray) -> float:
        """Return the largest violation of the optimality condition by a pair of coordinates."""
        grow, shrink = g[y < self.upper], g[y > self.lower]
        return max(float(shrink.max(initial=-np.inf) - grow.min(initial=np.inf)), 0.0)

    def _newton(self, y: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the minimizer over the free coordinates. Those that reach a bound stay there."""
        y = y.copy()
        for _ in range(MAX_BOUND_STEPS):
            free = np.flatnonzero((y > self.lower) & (y < self.upper))
            if free.size < 2:
                return y
            rows, old = self.Q[free], y[free]
            right = np.stack([-g[free], np.ones(free.size)], axis=1)
            step, shift = Cholesky(rows[:, free], LEAST_PIVOT).solve(right).T
            d = step - shift * (step.sum() / shift.sum())
            end = np.where(d > 0, self.upper[free], self.lower[free])
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.where(d != 0, (end - old) / d, np.inf)
            t = min(float(np.nanmin(reach)), 1.0)
            if not (np.isfinite(d).all() and t > 0.0):
                return y
            new = np.where(reach <= t, end, old + t * d)
            g += (new - old) @ rows
            y[free] = new
            if t == 1.0 and not (reach <= t).any():
                return y
        return y
