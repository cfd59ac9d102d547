"""Following a run with a lower bound on F_star."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ._conditioning import has_no_minimizer
from ._correction import corrected_bound, max_rows
from ._linear import Bound, Dual, LinearDual
from ._objective import LARGE, Certificate, Value, objective
from ._refinement import refined, samples_nearest_kinks

PERIOD, REMOTE_PERIOD = (
    3,
    7,
)  # iterations between residuals that are averaged; odd, unlike oscillations
ITERATIONS_PER_EVALUATION = 20  # gradients of the run for each evaluation of a refinement
MIN_EVALUATIONS, MAX_EVALUATIONS = 10, 300  # of one refinement; at the end of a run 100 in any case
FINAL_EVALUATIONS = 100
FREE_MULTIPLICATIONS = 1e6  # of a correction, about 1 ms, in the shortest of runs
CORRECTION_SHARE = 0.1  # of the multiplications of the run, for a correction
MIN_LOST = 1e-6  # share of a dual point lost by scaling above which it is corrected
MAX_COPIED_ENTRIES = 4_000_000  # entries of A that a refinement copies
MIN_COPIED_SAMPLES = 100  # samples of a refinement in any case
RESTART_WEIGHT = 8  # residuals that the mean before a restart counts for
LOOSE = 1e-6  # a tolerance for which ordinary sums may do
LARGEST_FLOAT = np.finfo(np.float64).max


class Proof(NamedTuple):
    """F(x) is `fun` up to `error`, and F_star is at least `value`."""

    fun: float
    error: float
    value: float
    point: np.ndarray | None  # the dual point

    @property
    def gap(self) -> float:
        """An upper bound on F(x) - F_star; infinite if none is known."""
        return Certificate.at(Value(self.fun, self.error), self.value).gap


@np.errstate(all="ignore")  # what overflows proves nothing
def prove(dual: Any, x: np.ndarray, u: np.ndarray | None, tol: float) -> Proof:
    """Return what is known about x, trying until a relative gap of tol is certified.

    u are slopes of the scalar losses (None for a quadratic function).
    """
    fun, error = objective(dual, x, tol)
    enough = fun - error - tol * abs(fun)
    best = Bound(-np.inf, u)  # type: ignore[arg-type]
    ordinary = (
        u is None
        or not isinstance(dual, LinearDual)
        or dual.loss.A.opaque
        or (tol >= LOOSE and dual.loss.A.size > LARGE)
    )
    for extended in (False, True) if ordinary else (True, False):
        if best.value < enough:
            found = _extended_bound(dual, u, enough) if extended else _ordinary_bound(dual, x, u)
            best = max(best, found, key=lambda bound: bound.value)
    return Proof(fun, error, *best)


def _extended_bound(dual: Any, u: np.ndarray | None, enough: float) -> Bound:
    return Bound(-np.inf, u) if u is None else corrected_bound(dual, u, enough)  # type: ignore[arg-type]


def _ordinary_bound(dual: Any, x: np.ndarray, u: np.ndarray | None) -> Bound:
    """Return a lower bound on F_star by ordinary sums, as a run finds it."""
    if u is not None and (dual.nonsmooth or dual.single):
        value: Bound = dual.value(u.astype(np.float64))
        return value
    # The slopes of a smooth loss at x are its residuals, whose product with A is the gradient.
    x = np.ascontiguousarray(x, dual.loss.dtype)
    oracle, g = dual.loss.oracle(x), np.empty_like(x)
    oracle(x, g)
    bound: Bound = dual.bound(x, g, dual.residuals(oracle, None))
    return bound


class Certifier:
    """The best lower bound on F_star so far, from the residuals that iterations leave behind.

    `dual` may be a phrase that says why there is no dual function. An iteration of the run takes so many `gradients`.
    """

    def __init__(self, dual: Dual | str, gradients: int = 1):
        self.dual: Any = dual
        self.available = not isinstance(dual, str)
        self.value: float = -np.inf  # the best lower bound so far
        self.point: np.ndarray | None = None
        self.accuracy = 0.0  # relative accuracy of objectives that matters; zero for the best one
        self.tried = False  # whether a dual point was found
        self.n, self.gradients = 0, gradients
        self.mean: LateMean | None = None  # of the residuals over the last half of the run
        self._objective: tuple[np.ndarray, Value] | None = None  # the last one
        self._refined = (
            np.empty(0, int),
            np.empty(0),
        )  # samples of the last refinement and their slopes

    @property
    def scale(self) -> float:
        """The scale of the problem: the mean loss of constant predictions; 0 if it is not known."""
        return self.dual.scale if self.available else 0.0

    @property
    def hopeless(self) -> bool:
        """Whether no dual point was found that says more than the loss's smallest value, because none is feasible.

        A feasible one that says less so far is no reason to give up: bounds become better as x does.
        """
        return not self.available or (
            self.tried and self.value <= self.dual.floor and self.dual.reason != ""
        )

    def gap(self, fun: Any) -> Any:
        """Return guesses of F(x) - F_star for computed objectives. What is reported is that of `certificate`."""
        gap = np.asarray(fun) - max(self.value, -LARGEST_FLOAT)
        return np.where(np.isfinite(gap) & isfinite(self.value), gap, np.inf)[()]

    def objective(self, x: np.ndarray) -> Value:
        """Return F(x), evaluated once for each x."""
        if self._objective is None or not np.array_equal(self._objective[0], x):
            self._objective = x.copy(), objective(self.dual, x, self.accuracy)
        return self._objective[1]

    def certificate(self, x: np.ndarray) -> Certificate:
        """Return what is proven about exactly this x."""
        if not self.available:
            raise TypeError("There is no dual function, and so no certificate.")
        found = Certificate.at(self.objective(x), self.value, self.point)
        return replace(found, message=self.message(found.fun, found))

    def has_no_minimizer(self, x: np.ndarray) -> bool:
        """Return whether the objective keeps decreasing along x."""
        return self.available and has_no_minimizer(self.dual.loss, self.dual.penalty, x)

    def message(self, fun: float, found: Certificate | None = None) -> str:
        """Return one sentence about what is certified."""
        if not self.available:
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
        """Take note of an iteration; `oracle` returns the oracle of its residuals and their column."""
        self.n += 1
        if not self.available or not self.dual.nonsmooth:
            return
        if self.n % (REMOTE_PERIOD if self.dual.loss.A.far else PERIOD) == 0:
            # Of the leading trajectory: a mean over several of them is as good.
            at, column = oracle()
            r = at.residuals(column)
            self.mean = self.mean or LateMean(r)
            self.mean.add(r)

    def restart(self) -> None:
        """Let the averages forget, because the iterates begin again from another point."""
        if self.mean is not None:
            self.mean.restart()

    @np.errstate(all="ignore")  # a bound that overflows is infinite, and proves nothing
    def improve(
        self, x: np.ndarray, g: np.ndarray, r: np.ndarray | None, best: np.ndarray, last: bool
    ) -> None:
        """Improve the bound with an iterate, its gradient and residuals, and the best iterate."""
        if not self.dual.nonsmooth:
            self.update(self.dual.bound(x, g, r))
            if r is not None and isinstance(self.dual, LinearDual):
                self._correct(self.dual.multipliers(r))
        elif self.mean is not None:
            u = self.dual.multipliers(self.mean.value())
            v = self.dual.product(u)
            self.update(self.dual.value(u, v))
            evaluations = min(MAX_EVALUATIONS, self.gradients * self.n // ITERATIONS_PER_EVALUATION)
            evaluations = max(evaluations, FINAL_EVALUATIONS if last else 0)
            if evaluations >= MIN_EVALUATIONS:
                self._refine(best, u, v, evaluations)
            self._correct(u)

    def _refine(self, x: np.ndarray, u: np.ndarray, v: np.ndarray, evaluations: int) -> None:
        """Refine u, where v = A'(w u), starting where the last refinement has ended if that is better."""
        most = max(MIN_COPIED_SAMPLES, MAX_COPIED_ENTRIES // self.dual.loss.A.shape[1])
        samples = samples_nearest_kinks(self.dual, x, most)
        start, (known, slopes) = u[samples], self._refined
        _, here, there = np.intersect1d(samples, known, assume_unique=True, return_indices=True)
        start[here] = slopes[there]
        for better in refined(self.dual, x, u, v, samples, start, evaluations=evaluations):
            self.update(self.dual.value(better.u, better.v))
            self._refined = samples, better.u[samples]

    def _correct(self, u: np.ndarray) -> None:
        """Move u into the dual set, where scaling it costs more and the run can afford it."""
        A = self.dual.loss.A
        columns = A.shape[1] + self.dual.loss.intercept
        allowed = max(FREE_MULTIPLICATIONS, CORRECTION_SHARE * self.n * self.gradients * A.size)
        if self.dual.lost > MIN_LOST and max_rows(A, columns) * columns**2 <= allowed:
            self.update(corrected_bound(self.dual, u))

    @np.errstate(all="ignore")
    def recall(self, point: np.ndarray, x: np.ndarray) -> None:
        """Try the dual point of a run that had ended at x, which was read from a file."""
        if not self.available or not self._fits(point):
            return
        if isinstance(self.dual, LinearDual):
            self.update(self.dual.value(point))
            self.update(corrected_bound(self.dual, point, np.inf))
        else:
            g = np.empty_like(x)
            self.dual.loss.oracle(x)(x, g)
            self.update(self.dual.bound(x, g, None))

    def _fits(self, point: np.ndarray) -> bool:
        """Return whether an array that was read from a file can be a dual point."""
        shape = self.dual.b.shape if isinstance(self.dual, LinearDual) else self.dual.loss.shape
        return point.shape == shape and point.dtype.kind == "f" and bool(np.isfinite(point).all())

    def update(self, bound: tuple[float, np.ndarray]) -> None:
        """Keep the best lower bound and its dual point."""
        self.tried = True
        if bound[0] > self.value:
            self.value, self.point = bound

    def record(self, proof: Proof, x: np.ndarray) -> None:
        """Take over what `prove` has found out about x."""
        self._objective = x.copy(), Value(proof.fun, proof.error)
        if proof.point is not None and not np.isnan(proof.value):
            self.update((proof.value, proof.point))


class LateMean:
    """The mean of what was added in the last half to three quarters of the time."""

    def __init__(self, like: np.ndarray):
        self.latest, self.before = np.zeros_like(like), np.zeros_like(like)
        self.count = self.count_before = 0

    def add(self, r: np.ndarray) -> None:
        self.latest += r
        self.count += 1
        if self.count >= 2 * self.count_before:  # twice as much as before this half began
            self.latest, self.before = self.before, self.latest
            self.latest[...] = 0.0
            self.count, self.count_before = 0, self.count

    def restart(self) -> None:
        """Keep the mean with the weight of a few residuals only: soon others take its place."""
        self.before = self.value()
        self.before *= RESTART_WEIGHT
        self.latest[...] = 0.0
        self.count, self.count_before = 0, RESTART_WEIGHT

    def value(self) -> np.ndarray:
        """Return the mean."""
        total: np.ndarray = self.latest + self.before
        total /= self.count + self.count_before
        return total
