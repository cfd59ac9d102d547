"""Following a run with a lower bound on F_star, at a small part of its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from ._conditioning import has_no_minimizer
from ._correct import most_rows
from ._dual import Dual, LinearDual
from ._exact import Proof, corrected_bound, lower_bound
from ._extended import Known
from ._objective import Certificate, is_provable, objective
from ._refine import EVALUATIONS, ROUNDS, refined, samples_nearest_kinks

REFINEMENTS, AUTO = 0.025, 0.5  # of a run's time, for refinements, and the same with eta="auto"
# A model of the machine, in seconds, so that two runs of one problem look at the same iterations.
CALL, MULTIPLICATION = 4e-6, 1.2e-10  # one iteration: what it costs at least
FAR_STRIDE = 7  # iterations between residuals that have to be fetched
TRIAL = 3e-5  # one evaluation inside the refinement
EXACT_PASS, CORRECTION = (
    10.0,
    5e-10,
)  # products in twice the precision, in ordinary ones; seconds of a least squares problem
ENTRIES = 4_000_000  # numbers that are copied without asking how large A is
FEW_SAMPLES, LEAST_EVALUATIONS = 100, 30  # of a refinement
LATER = 1.3  # by which factor the run grows between two refinements
LOST, SMOOTH_SHARE = (
    1e-6,
    0.2,
)  # part of a dual point that scaling has cost, so that a correction is tried; of its seconds
KEPT = 8  # additions that the mean before a restart counts for
FINAL = 8e-3  # seconds that a refinement may take in the end, however short the run was
LARGEST_FLOAT = np.finfo(np.float64).max


class Certifier:
    """The best lower bound on F_star so far, from the residuals the iteration leaves behind.

    `dual` may be a phrase that says why there is no dual function: then nothing is ever known.
    """

    def __init__(self, dual: Dual | str, trajectories: int = 1):
        self.dual: Any = dual
        self.value: float = -np.inf  # of the dual function, the best so far
        self.noise = 0.0  # how precisely the run knows its objective, as of the last look
        self.bound: float = (
            -np.inf
        )  # value - noise, so that F(x) - F_star <= fun - bound for the computed fun, too
        self.point: np.ndarray | None = None
        self.known, self.tried = (
            not isinstance(dual, str),
            False,
        )  # whether there is a dual function, and a value of it
        self.accuracy = (
            0.0  # the relative accuracy of objectives that matters; zero: as accurate as possible
        )
        self._evaluated: tuple[np.ndarray, Known] | None = (
            None  # the last x whose objective was evaluated
        )
        if isinstance(dual, str):
            return
        self.mean: Any = None  # of the residuals over the last half to three quarters of the run
        loss: Any = dual.loss  # type: ignore[attr-defined]
        matrix = getattr(loss, "A", None) or loss.Q
        samples, far = matrix.shape[0], matrix.overhead
        self.work = trajectories * (CALL + MULTIPLICATION * matrix.size) + far
        # Adding up residuals takes time as well; an odd stride does not fall into step with an oscillation.
        self.stride = FAR_STRIDE if matrix.far else 1 if self.work > 50 * CALL else 3
        # Rows that may be copied: a fiftieth of A, or as many as a vertex of a polyhedral problem has samples at their kinks.
        self.most = max(
            FEW_SAMPLES, samples // 50, min(3 * matrix.shape[1], ENTRIES // matrix.shape[1])
        )
        self.n = self.refined_at = 0
        self.share, self.final = (REFINEMENTS, FINAL) if trajectories == 1 else (AUTO, 3 * FINAL)
        self.spent = 0.0  # seconds that refinements have taken
        self.known_samples, self.known_multipliers = (
            np.empty(0, int),
            np.empty(0),
        )  # of the last refinement

    @property
    def scale(self) -> float:
        """The scale of the problem: the mean loss of constant predictions; 0 if it is not known."""
        return 0.0 if isinstance(self.dual, str) else self.dual.scale

    @property
    def hopeless(self) -> bool:
        """Whether no dual point was found that says more than the loss's smallest value, because none is feasible.

        A feasible one that says less so far is no reason to give up: bounds become better as x does.
        """
        return isinstance(self.dual, str) or (
            self.tried and self.value <= self.dual.floor and self.dual.reason != ""
        )

    def gap(self, fun: Any) -> Any:
        """A guess of F(x) - F_star for the objectives that a run has computed. What is reported is that of `certificate`."""
        if np.ndim(fun):
            return np.where(
                np.isfinite(fun) & isfinite(self.bound),
                fun - max(self.bound, -LARGEST_FLOAT),
                np.inf,
            )
        gap = fun - self.bound
        return gap if isfinite(gap) else np.inf

    def objective(self, x: np.ndarray) -> Known:
        """F(x), evaluated once for each x."""
        if self._evaluated is None or not np.array_equal(self._evaluated[0], x):
            self._evaluated = x.copy(), objective(self.dual, x, self.accuracy)
        return self._evaluated[1]

    def certificate(self, x: np.ndarray) -> Certificate:
        """What is proven about exactly this x."""
        if isinstance(self.dual, str):
            raise TypeError("There is no dual function, and so no certificate.")
        found = Certificate.at(self.objective(x), self.value, self.point)
        return replace(found, message=self.message(found.fun, found))

    def has_no_minimizer(self, x: np.ndarray) -> bool:
        """Return whether the objective keeps decreasing along x."""
        return not isinstance(self.dual, str) and has_no_minimizer(
            self.dual.loss, self.dual.penalty, x
        )

    def message(self, fun: float, found: Certificate | None = None) -> str:
        """One sentence about what is certified."""
        if isinstance(self.dual, str):
            return f"There is no certificate: {self.dual}."
        if not np.isfinite(fun):
            return f"There is no certificate: the objective is {fun}."
        if found is None or not np.isfinite(found.gap):
            return f"The duality gap is infinite: {self.dual.reason or 'there was no iteration'}."
        if self.value <= self.dual.floor:
            known = f"All that is proven about the objective {fun:.6g} is that the optimum is at least {found.bound:.6g}"
            return f"{known}: {self.dual.reason}." if self.dual.reason else f"{known}."
        return f"The objective {fun:.6g} is within {found.gap:.2e} of the optimum ({found.relative:.1e} relative)."

    def observe(self, oracle: Callable[[], tuple[Any, int | None]]) -> None:
        """One more iteration is complete; `oracle` returns its residuals' oracle and column."""
        if isinstance(self.dual, str):
            return
        self.n += 1
        if self.dual.kinked and self.n % self.stride == 0:
            # Of the leading trajectory: a mean over several of them is as good.
            at, column = oracle()
            r = at.residuals(column)
            if self.mean is None:
                self.mean = LateMean(r)
            self.mean.add(r)

    def restart(self) -> None:
        """The iterates begin anew from another point."""
        if not isinstance(self.dual, str) and self.mean is not None:
            self.mean.restart()

    @np.errstate(all="ignore")
    def check(
        self, x: np.ndarray, g: np.ndarray, r: np.ndarray | None, best: np.ndarray, last: bool
    ) -> None:
        """Improve the bound with an iterate, its gradient and residuals, and the best iterate."""
        self._consider(x, g, r, best, self._affordable(last))

    @np.errstate(all="ignore")
    def recall(self, point: np.ndarray, x: np.ndarray) -> None:
        """Try the dual point of a run that had ended at x, which was read from a file."""
        if not (self.known and self._fits(point)):
            return
        if isinstance(self.dual, LinearDual):
            self.offer(*self.dual.value(point))
            if is_provable(self.dual):
                self.offer(*lower_bound(self.dual, point))
        else:
            g = np.empty_like(x)
            self.dual.loss.oracle(x)(x, g)
            self.offer(*self.dual.bound(x, g, None))

    def _fits(self, point: np.ndarray) -> bool:
        """Whether a dual point that was read from a file can be one."""
        shape = self.dual.b.shape if isinstance(self.dual, LinearDual) else self.dual.loss.shape
        return point.shape == shape and point.dtype.kind == "f" and bool(np.isfinite(point).all())

    def _affordable(self, last: bool) -> float:
        """How many seconds a refinement may take now."""
        credit = self.share * self.n * self.work - self.spent
        return (
            max(credit, self.final)
            if last
            else credit
            if self.n >= LATER * self.refined_at
            else 0.0
        )

    @np.errstate(all="ignore")  # a bound that overflows is infinite, and proves nothing
    def _consider(self, x: Any, g: Any, r: Any, best: np.ndarray, seconds: float) -> None:
        if not self.dual.kinked:
            self.offer(*self.dual.bound(x, g, r))
            if r is not None and self.dual.lost > LOST:
                self._correct(
                    self.dual.multipliers(r), self.dual.loss.A.shape[0], SMOOTH_SHARE * seconds
                )
                self.refined_at = self.n
        elif self.mean is not None:
            u = self.dual.multipliers(self.mean.value())
            v = self.dual.product(u)
            self.try_(u, v)
            if seconds > ROUNDS * LEAST_EVALUATIONS * TRIAL:
                self._refine(best, u, v, seconds)
        self.measure(x, r)

    def _refine(self, x: np.ndarray, u: np.ndarray, v: np.ndarray, seconds: float) -> None:
        """A refinement of the mean u, v = A'(w u), from where the last one has ended if that is better."""
        matrix = self.dual.loss.A
        row = 4 * MULTIPLICATION * max(matrix.size / matrix.shape[0], 1.0)
        most = int(
            (seconds / (ROUNDS * LEAST_EVALUATIONS) - TRIAL) / row
        )  # samples that there is time for
        samples = samples_nearest_kinks(self.dual, x, min(most, self.most))
        cost = ROUNDS * (TRIAL + row * samples.size)
        evaluations = min(EVALUATIONS, int(seconds / cost))
        if evaluations < LEAST_EVALUATIONS:
            return
        start = u[samples]
        place = np.minimum(
            np.searchsorted(self.known_samples, samples), max(self.known_samples.size - 1, 0)
        )
        if self.known_samples.size:
            same = self.known_samples[place] == samples
            start[same] = self.known_multipliers[place[same]]
        for better in refined(self.dual, x, u, v, samples, start, evaluations=evaluations):
            self.try_(better.u, better.v)
            self.known_samples, self.known_multipliers = samples, better.u[samples]
        self.spent += evaluations * cost + ROUNDS * self.work * self.dual.loss.intercept
        self._correct(u, samples.size, seconds)
        self.refined_at = self.n

    def _correct(self, u: np.ndarray, most: int, seconds: float) -> None:
        """Move u into the dual set, where scaling it would cost more: by a change of at most so many samples."""
        matrix = self.dual.loss.A
        columns = min(most, matrix.shape[1])
        most = min(most, most_rows(matrix, columns))
        cost = (
            EXACT_PASS * MULTIPLICATION * matrix.size * self.dual.b[:1].size
            + CORRECTION * float(most) * columns**2
        )
        if cost <= seconds:
            self.offer(*corrected_bound(self.dual, u))
            self.spent += cost

    def try_(self, u: np.ndarray, v: np.ndarray) -> None:
        """The dual function at u, which may be overwritten later, and v = A'(w u)."""
        self.offer(*self.dual.value(u, v))

    def offer(self, value: float, point: np.ndarray) -> None:
        """A value of the dual function and its dual point: keep the best."""
        self.tried = True
        if value > self.value:
            self.value, self.point = value, point
            self.bound = value - self.noise

    def offer_proof(self, proof: Proof, x: np.ndarray) -> None:
        """What `prove` has found out about x: from here on `gap(proof.fun)` is the proven one, until the next look."""
        self._evaluated = x.copy(), Known(proof.fun, proof.error)
        if proof.point is not None and not np.isnan(proof.value):
            self.offer(proof.value, proof.point)
        self.noise = np.inf if np.isnan(proof.error) else proof.error
        self.bound = self.value - self.noise

    def measure(self, x: np.ndarray, r: np.ndarray | None) -> None:
        """See how precise objectives are near x, with residuals r."""
        if np.isfinite(self.value) and np.isfinite(x).all():
            noise = self.dual.noise(x, r)
            self.noise = np.inf if np.isnan(noise) else noise  # where something overflows
            self.bound = self.value - self.noise


class LateMean:
    """The mean of what was added in the last half to three quarters of the time."""

    def __init__(self, like: np.ndarray):
        self.latest, self.before = (
            np.zeros(like.shape, like.dtype),
            np.zeros(like.shape, like.dtype),
        )
        self.count = self.count_before = 0

    def add(self, r: np.ndarray) -> None:
        self.latest += r
        self.count += 1
        if self.count == max(
            1, 2 * self.count_before
        ):  # as much again as was added before this half began
            self.latest, self.before = self.before, self.latest
            self.latest[...] = 0.0
            self.count, self.count_before = 0, self.count

    def restart(self) -> None:
        """Keep the mean with the weight of a few additions only: soon others take its place."""
        self.before = self.value()
        self.before *= KEPT
        self.latest[...] = 0.0
        self.count, self.count_before = 0, KEPT

    def value(self) -> np.ndarray:
        total = self.latest + self.before
        total /= self.count + self.count_before
        return total
