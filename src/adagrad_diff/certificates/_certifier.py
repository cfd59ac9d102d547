"""Following a run with a lower bound on F_star, at a small part of its time."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np

from ._dual import Dual
from ._refine import EVALUATIONS, ROUNDS, refined, samples_at_kinks

LOOKS, REFINEMENTS, AUTO = 0.03, 0.04, 0.5  # of a run's time: for plain candidates, for refinements, and these with eta="auto"
# A model of the machine, in seconds, so that two runs of one problem look at the same iterations.
CALL, MULTIPLICATION = 4e-6, 1.2e-10  # one iteration: what it costs at least
LOOK, SAMPLE = 2e-4, 3e-8  # one evaluation of the dual function
TRIAL = 3e-5  # one evaluation inside the refinement
ENTRIES = 4_000_000  # numbers that are copied without asking how large A is
FEW, LEAST, LATER = 100, 30, 1.5  # of samples and evaluations; by which factor the run grows between two refinements
ENOUGH = 16  # residuals that make a mean
FINAL = 8e-3  # seconds that a refinement may take in the end, however short the run was
TINY = np.finfo(np.float64).tiny


class Certifier:
    """The best lower bound on F_star so far, from the residuals the iteration leaves behind.

    `dual` may be a phrase that says why there is no dual function: then nothing is ever known.
    """

    def __init__(self, dual: Dual | str, trajectories: int = 1):
        self.dual: Any = dual
        self.bound: float = -np.inf
        self.point: np.ndarray | None = None
        self.known = not isinstance(dual, str)
        self.back: Callable[[np.ndarray], np.ndarray] = lambda x: x  # from the run's coordinates to the loss's own
        if isinstance(dual, str):
            return
        self.mean: Any = None  # of the residuals over the last half to three quarters of the run
        self.earlier: Any = None  # and of the winner before a restart
        loss: Any = dual.loss  # type: ignore[attr-defined]
        matrix = getattr(loss, "A", None) or loss.Q
        samples, self.work = matrix.shape[0], trajectories * (CALL + MULTIPLICATION * matrix.size)
        self.every = ceil((LOOK + SAMPLE * samples + self.work * dual.kinked) / (LOOKS * self.work))
        # Adding up residuals takes time as well; an odd stride does not fall into step with an oscillation.
        self.stride = 1 if self.work > 50 * CALL else 3
        # Rows that may be copied: a fiftieth of A, or as many as a vertex of a polyhedral problem has samples at their kinks.
        self.most = max(FEW, samples // 50, min(3 * matrix.shape[1], ENTRIES // matrix.shape[1]))
        self.n = self.refined_at = 0
        self.share, self.final = (REFINEMENTS, FINAL) if trajectories == 1 else (AUTO, 3 * FINAL)
        self.next, self.spent = 1, 0.0  # the iteration of the next look, the seconds refinements have taken
        self.multipliers: np.ndarray | None = None  # of the last refinement

    def gap(self, fun: Any) -> Any:
        """F(x) - F_star is at most this."""
        return fun - self.bound

    def relative(self, state: Any) -> tuple[Any, Any]:
        """The gap at the iterate, and the unit it is measured in."""
        fun = state.fun
        return fun - self.bound, np.maximum(np.abs(fun), TINY) if state.batched else max(abs(fun), TINY)

    def message(self, fun: float) -> str:
        """One sentence about what is certified."""
        if isinstance(self.dual, str):
            return f"There is no certificate: {self.dual}."
        if not np.isfinite(self.bound):
            return f"The duality gap is infinite: {self.dual.reason or 'there was no iteration'}."
        gap = fun - self.bound
        return f"F(x) = {fun:.6g} is within {gap:.2e} of the optimum ({gap / max(abs(fun), TINY):.1e} relative)."

    def follow(self, state: Any, last: bool) -> None:
        """One more iteration is complete; after the last one, look as closely as possible."""
        if isinstance(self.dual, str):
            return
        self.n += 1
        if self.dual.kinked and self.n % self.stride == 0:
            if self.mean is None or self.mean.latest.shape != state.oracle.r.shape:
                self.mean = LateMean(state.oracle.r)
            self.mean.add(state.oracle.r)
        if last or self.n >= self.next:
            self.look(state, self._affordable(last))
            self.next = self.n + self.every

    def _affordable(self, last: bool) -> float:
        """How many seconds a refinement may take now."""
        credit = self.share * self.n * self.work - self.spent
        return max(credit, self.final) if last else credit if self.n >= LATER * self.refined_at else 0.0

    def look(self, state: Any, seconds: float = 0.0) -> None:
        """Improve the bound by the candidates at hand, and by a refinement if there is time for one."""
        column = int(np.argmin(np.where(state.failed, np.inf, state.fun))) if state.batched else None
        x, g, best = (a if a is None or column is None else a[..., column] for a in (state.x, state.g, state.x_best))
        r = self.dual.residuals(state.oracle, column)
        self._consider(x, g, r, x if best is None else best, column, seconds)

    def finish(self, x: np.ndarray, g: np.ndarray, r: np.ndarray | None, column: int = 0) -> None:
        """The last look, at the best of several trajectories: an iterate, its gradient and residuals."""
        self._consider(x, g, r, x, column, self._affordable(last=True))

    def _consider(self, x: Any, g: Any, r: Any, best: np.ndarray, column: int | None, seconds: float) -> None:
        if not self.dual.kinked:
            self.offer(*self.dual.bound(x, g, r))
            return
        mean = self._mean(column)
        if mean is None:
            return
        u = self.dual.multipliers(mean)
        v = self.dual.product(u)
        self.offer(*self.dual.value(u, v))
        if seconds > ROUNDS * LEAST * TRIAL:
            self._refine(self.back(best), u, v, seconds)

    def _mean(self, column: int | None) -> np.ndarray | None:
        """The mean of late residuals of one trajectory; just after a restart, that of the winner before."""
        if self.mean is None or (self.mean.count + self.mean.count_before < ENOUGH and self.earlier is not None):
            return self.earlier
        mean = self.mean.value()
        return mean if column is None else mean[:, column]

    def restart(self, column: int) -> None:
        """The trajectories begin anew; `column` was the best of those before."""
        self.earlier, self.mean = self._mean(column), None

    def _refine(self, x: np.ndarray, u: np.ndarray, v: np.ndarray, seconds: float) -> None:
        """A refinement of the mean u, v = A'(w u), from where the last one has ended if that is better."""
        matrix = self.dual.loss.A
        row = 4 * MULTIPLICATION * matrix.size / matrix.shape[0]
        most = int((seconds / (ROUNDS * LEAST) - TRIAL) / row)  # samples that there is time for
        samples = samples_at_kinks(self.dual, x, u, min(most, self.most))
        cost = ROUNDS * (TRIAL + row * samples.size)
        evaluations = min(EVALUATIONS, int(seconds / cost))
        if evaluations < LEAST:
            return
        for better in refined(self.dual, x, u, v, samples, self.multipliers, evaluations=evaluations):
            self.offer(*self.dual.value(better.u, better.v))
            self.multipliers = better.u
        self.spent += evaluations * cost + ROUNDS * self.work * self.dual.loss.intercept
        self.refined_at = self.n

    def offer(self, bound: float, point: np.ndarray) -> None:
        if bound > self.bound:
            self.bound, self.point = bound, np.array(point)


class LateMean:
    """The mean of what was added in the last half to three quarters of the time."""

    def __init__(self, like: np.ndarray):
        self.latest, self.before = np.zeros(like.shape), np.zeros(like.shape)
        self.count = self.count_before = 0

    def add(self, r: np.ndarray) -> None:
        self.latest += r
        self.count += 1
        if self.count == max(1, 2 * self.count_before):  # as much again as was added before this half began
            self.latest, self.before = self.before, self.latest
            self.latest[...] = 0.0
            self.count, self.count_before = 0, self.count

    def value(self) -> np.ndarray:
        return (self.latest + self.before) / (self.count + self.count_before)
