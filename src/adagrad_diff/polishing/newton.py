"""Smooth losses by Newton's method: working sets, subproblems on them, and searches along steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Multinomial, Quadratic
from ..losses.linear import LinearModel
from ..penalties import Penalty
from .hyperplane import HyperplaneSolver
from .loss_model import (
    MAX_DENSE_QUADRATIC,
    LinearLossModel,
    LossModel,
    MultinomialModel,
    QuadraticModel,
)
from .quadratic_terms import Terms, terms_of
from .remote_model import RemoteModel
from .solver import Outcome, Solver, Stop
from .subproblem import DenseSubproblem, MatrixFreeSubproblem

MAX_NEWTON_STEPS = 60
MAX_SEARCH = 40  # trials along a step
# Multiplications for a Hessian: at most, below which the working set has all coordinates, and the
# same if one Hessian serves all steps.
MAX_HESSIAN_WORK, SMALL_HESSIAN_WORK, CONSTANT_HESSIAN_WORK = 2e10, 1e7, 5e8
MIN_WORKING_SET = 100  # coordinates that may join, or as many as are free
REMAINING_SHARE = 0.01  # of the tolerance: the error that may be left
FIRST_DAMPING, LARGE_DAMPING, MAX_DAMPING = 3e-3, 1e2, 1e3  # in units of the mean curvature
LEAST_CURVATURE = 1e-9  # of a coordinate that can move, relative to its largest curvature
LEAST_OBJECTIVE_SHARE = 1e-14  # part of the objective at zero that counts as zero
NOISE_SHARE = 1e-13  # part of the objective that rounding may have added
EPSILON = float(np.finfo(np.float64).eps)
# Multiplications of a step, to estimate its work: at least, and per prediction and coordinate.
MIN_STEP_WORK, STEP_WORK_PER_NUMBER = 1e7, 100.0


class Newton(Solver):
    """The method for one problem."""

    model: LossModel
    value: float  # the objective at the start

    def __init__(self, loss: Any, terms: Terms):
        self.loss, self.terms = loss, terms

    def solve(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> Outcome:
        if not hasattr(self, "model"):
            self.model = _model(self.loss)
        model, terms = self.model, self.terms
        start = model.enter(x)
        with np.errstate(all="ignore"):  # an overflow shows in the value
            start = np.clip(start, terms.lower, terms.upper) if terms.bounded else start
            outcome = self._iterate(start, tol, stop)
            # At the optimum the objective is flat. Rounding decides about its last digits, but the
            # gradient is more accurate.
            slack = NOISE_SHARE * abs(self.value) if outcome.done else 0.0
            if model.value + terms.value(outcome.x) > self.value + slack:
                outcome.x = start
                model.start(start)
            outcome.u = model.slopes()
        numbers = max(model.samples, 1) * self.loss.shape[0]
        self.work = outcome.rounds * (MIN_STEP_WORK + STEP_WORK_PER_NUMBER * numbers)
        outcome.x = model.leave(outcome.x).reshape(self.loss.shape)
        return outcome

    def _iterate(self, x: np.ndarray, tol: float, stop: Stop) -> Outcome:
        model, terms = self.model, self.terms
        self.index = np.empty(0, np.intp)  # the working set
        self.used = ~model.unused()
        if not self.used.all():
            penalized = terms.l1 + terms.l2 > 0
            if terms.strength is not None:
                penalized |= terms.strength[terms.labels] > 0
            x = np.where(self.used | ~penalized, x, 0.0)
        model.start(x)
        phi = terms.value(x)
        self.value = model.value + phi

        def outcome(reason: str = "", count: int | None = None) -> Outcome:
            count = int(terms.free(x).sum()) if count is None else count
            return Outcome(x, None, not reason, step, model.samples, count, reason)

        step = 0
        if not (np.isfinite(self.value) and np.isfinite(model.gradient).all()):
            return outcome("the objective overflows where it began", 0)
        gain, last_excess, damping, easing = np.inf, np.inf, 0.0, 1.0
        for step in range(MAX_NEWTON_STEPS):  # noqa: B007 (`outcome` uses it)
            r = np.where(self.used, terms.residual(x, model.gradient), 0.0)
            size = max(abs(model.value + phi), LEAST_OBJECTIVE_SHARE * model.scale, 1e-300)
            excess = self._excess(r, tol, size)
            stuck = (  # because of rounding
                excess > 0.5 * last_excess
                and gain <= NOISE_SHARE * size
                and excess <= max(1e-6 / max(tol, EPSILON), 100.0)
            )
            if gain <= REMAINING_SHARE * tol * size and (excess <= 1.0 or stuck):
                return outcome()
            if stop():
                return outcome("the time was over")
            last_excess = excess
            index = self._working_set(x, r)
            if index.size == 0:
                return outcome("", 0)
            part, old, g = terms.part(index), x[index], model.gradient[index]
            bound = np.maximum(model.bound()[index], 1e-300)
            possible = float(np.sum(r[index] ** 2 / (bound + part.l2)))
            model.damping = damping * (1.0 if easing == 1.0 else min(1.0, 100.0 * possible / size))
            new = self._subproblem(index, part, x, possible, size)
            slope = float(g @ (new - old)) + part.value(new) - part.value(old)
            if not np.isfinite(slope):
                return outcome("a step was not finite", index.size)
            if slope > 4 * EPSILON * size:  # not a descent direction: make a gradient step instead
                y = bound * old - g
                shrunk = np.copysign(np.maximum(np.abs(y) - part.l1, 0.0), y) / (bound + part.l2)
                new = np.clip(shrunk, part.lower, part.upper)
                slope = float(g @ (new - old)) + part.value(new) - part.value(old)
            gain, d = max(-slope, 0.0), new - old
            model.along(index, d)
            t = self._search(old, d, part, slope, model.value + phi - part.value(old))
            if t == 0.0:
                if gain <= max(REMAINING_SHARE * tol, NOISE_SHARE) * size and excess <= 1.0:
                    return outcome("", index.size)
                if model.damping > MAX_DAMPING:
                    return outcome("no step decreased the objective", index.size)
                damping = max(LARGE_DAMPING * model.damping, FIRST_DAMPING)
                continue
            if t < 0.5:
                damping, easing = max(2.0 * model.damping, FIRST_DAMPING), 1.0
            elif t == 1.0:
                damping *= easing if damping > 0.1 * FIRST_DAMPING else 0.0
                easing = max(0.5 * easing, 0.1)
            x = x.copy()
            x[index] = new if t == 1.0 else old + t * d
            model.move(t)
            phi = terms.value(x)
        step = MAX_NEWTON_STEPS
        return outcome("there may be no minimizer: the objective still decreases after many steps")

    def _excess(self, r: np.ndarray, tol: float, size: float) -> float:
        """Return the largest residual in units of what is allowed."""
        terms = self.terms
        if terms.smooth and terms.l2.all():  # strongly convex: this bounds the error of F
            error = float(np.sum(r * r / terms.l2)) / 2.0
            return float(np.sqrt(error / (REMAINING_SHARE * tol * size)))
        noise, strength = self.model.noise(), terms.l1
        if terms.strength is not None:
            strength = strength + terms.strength[terms.labels]
        allowed = REMAINING_SHARE * tol * np.where(strength > 0, strength, noise)
        return float(
            np.max(np.abs(r) / np.maximum(np.maximum(allowed, 16 * EPSILON * noise), 1e-300))
        )

    # ------------------------------------------------------------ working sets and subproblems

    def _formed(self, count: int) -> bool:
        """Return whether the Hessian of so many coordinates is formed."""
        model, smooth = self.model, self.terms.smooth
        few_samples = smooth and 0 < 4 * model.samples < count  # then products are better
        fits = count <= model.max_dense[smooth] and model.cost(count) <= MAX_HESSIAN_WORK
        return fits and not few_samples

    def _working_set(self, x: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the free coordinates and those with the largest residuals of the others."""
        model, n = self.model, self.model.size
        if n <= model.max_dense[False] and model.cost(n) <= SMALL_HESSIAN_WORK:
            return np.flatnonzero(self.used)
        free = self.terms.free(x)
        joining = ~free & (r != 0)
        most = max(MIN_WORKING_SET, int(free.sum()))
        if np.count_nonzero(joining) > most:
            score = np.where(joining, r * r / np.maximum(model.bound(), 1e-300), 0.0)
            joining &= score >= np.partition(score, -most)[-most]
        needed = self.terms.whole_groups(free | joining) & self.used
        count = np.count_nonzero(needed)
        if self.index.size <= 2 * count + 100 and needed[self.index].sum() == count:
            return self.index  # its columns and Hessian can be used again
        once = model.constant and self._formed(n) and model.cost(n) <= CONSTANT_HESSIAN_WORK
        if once and self.index.size:  # one Hessian of all coordinates serves all steps
            needed = self.used
        self.index = np.flatnonzero(needed)
        return self.index

    def _subproblem(
        self, index: np.ndarray, part: Terms, x: np.ndarray, gain: float, size: float
    ) -> np.ndarray:
        model = self.model
        if not self._formed(index.size):
            return MatrixFreeSubproblem(model, part, index, x[index], size).solve(gain)
        H = model.hessian(index)
        # Coordinates without curvature here, but elsewhere, could not move.
        least = LEAST_CURVATURE * model.bound()[index]
        flat = H.diagonal() + part.l2 < least
        if flat.any():
            H = H + np.diag(np.where(flat, least, 0.0))
        inexact = 0.0 if model.constant else gain * min(0.05, gain / size)
        problem = DenseSubproblem(H, model.gradient[index], x[index], part)
        return problem.solve(max(1e-26 * size, inexact))

    def _search(
        self, old: np.ndarray, d: np.ndarray, part: Terms, slope: float, rest: float
    ) -> float:
        """Return a part t of the step with sufficient decrease, or 0 if there is none."""
        at, t = rest + part.value(old), 1.0
        slack = 8 * EPSILON * (abs(at) + abs(rest))
        for _ in range(MAX_SEARCH):
            value = self.model.at(t) + (rest - self.model.value) + part.value(old + t * d)
            if value <= at + 1e-4 * t * slope + slack:
                return t
            curvature = value - at - t * slope  # of the interpolating parabola
            usable = np.isfinite(curvature) and curvature > 0
            best = -0.5 * t * t * slope / curvature if usable else 0.0
            t = min(max(best, 0.1 * t), 0.5 * t)
        return 0.0


def smooth_solver(loss: Any, penalty: Penalty) -> Newton | HyperplaneSolver | str:
    """Return a solver, or a phrase that says why there is none."""
    if (plane := penalty.box_hyperplane()) is not None:
        quadratic = isinstance(loss, Quadratic) and not loss.Q.opaque
        if not quadratic or loss.shape[0] > MAX_DENSE_QUADRATIC or not plane[2].all():
            return "with a hyperplane, the loss must be a quadratic function whose matrix fits into memory"
        return HyperplaneSolver(loss, penalty, *plane[:3])
    if not isinstance(loss, LinearModel | Multinomial | Quadratic):
        return "polishing does not support this loss"
    multinomial = isinstance(loss, Multinomial)
    if isinstance(loss, LinearModel) and not multinomial and loss.curvature is None:
        return "the second derivative of the loss is not known"
    size = int(np.prod(loss.shape))
    intercepts = size // loss.shape[0] if loss.intercept else 0
    terms = terms_of(penalty, size - intercepts, getattr(loss, "l2", 0.0))
    return terms if isinstance(terms, str) else Newton(loss, terms.extended(intercepts))


def _model(loss: Any) -> LossModel:
    if isinstance(loss, Quadratic):
        return QuadraticModel(loss)
    if isinstance(loss, Multinomial):
        return MultinomialModel(loss)
    return RemoteModel(loss) if loss.A.far else LinearLossModel(loss)
