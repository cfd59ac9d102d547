r"""Piecewise linear losses: an active-set method around a linear or quadratic program.

S are the coefficients that are neither zero nor at a bound, K the samples nearest to their
nonsmooth points. All other samples keep their side, so their losses sum to one linear term. The
subproblem in S and K is solved exactly. Then all samples and columns are checked: samples that have
changed sides join K, columns that violate the optimality condition join S, until there are none.
Then the multipliers of the subproblem and the slopes of the other samples are a dual point.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from ..linalg import as_source
from ..losses import LinearModel
from ..losses.base import Coordinates
from ..penalties import Penalty
from .crossover import RANK, solve_program
from .interior_point import Program
from .quadratic_terms import Terms, terms_of
from .solver import Outcome, Solver, Stop

MAX_ROUNDS = 30
SAMPLES_PER_COEFFICIENT, MIN_SAMPLES = 3.0, 50  # of K, at first
# With N samples and p coefficients, a random part of sqrt(20 N p) samples is solved first if N is
# five times larger. Then about 2.4 sqrt(p / part) of all samples may be on the other side.
RANDOM_PART, LEAST_RATIO, UNCERTAIN_SHARE = 20, 5, 2.4
SAMPLE_GROWTH = 4  # factor by which K grows or shrinks
MAX_WRONG_SHARE = 0.1  # of K that may have changed sides; otherwise K grows
MAX_ERROR_SHARE = 0.1  # of the tolerance that the error of a subproblem may have
# Tolerance of a slope in units of its column, and of a prediction in units of the targets.
TOLERANCE = 1e-11
PREDICTION_ROUNDING = 8 * float(
    np.finfo(float).eps
)  # of a prediction, relative to the sizes of its terms
MIN_JOINING = 50  # columns that may join S in one round, or as many as it has
MIN_OBJECTIVE = 1e-6  # of a subproblem, in units of the targets and samples
MAX_ENTRIES = 40_000_000  # of the matrix of a subproblem
STEPS, STEP_WORK = (
    18,
    2e6,
)  # of an interior point method, and the multiplications each costs at least


class Evaluation(NamedTuple):
    """A point, and the predictions and slopes there."""

    x: np.ndarray
    t: np.ndarray  # A x - b
    r: np.ndarray  # weights times slopes
    v: np.ndarray  # A' r
    fun: float


class ActiveSet(Solver):
    """The method for one problem."""

    def __init__(self, loss: LinearModel, terms: Terms, coordinates: Coordinates):
        self.loss, self.terms, features = loss, terms, loss.A.shape[1]
        self.coordinates, self.unit = coordinates, coordinates.unit
        scale, center, flat = coordinates.scale, coordinates.center, coordinates.flat
        self.scale = np.ones(features) if scale is None else scale
        self.center = np.zeros(features) if center is None else center.astype(np.float64)
        self.flat = np.zeros(features, bool) if flat is None else flat
        self.movable = (terms.lower < terms.upper) & ~self.flat
        self.weight, self.b = loss.weight.astype(np.float64), loss.b.astype(np.float64)
        self.used = self.weight > 0
        slopes = loss.slopes(loss.b, loss.theta)
        self.low, self.high = (self.weight * np.asarray(end, np.float64) for end in slopes)
        self.samples_per_coefficient = SAMPLES_PER_COEFFICIENT
        self.error = 0.0  # of the last subproblem, relative

    @staticmethod
    def _work(samples: int, coefficients: int) -> float:
        return STEPS * (STEP_WORK + float(samples) * coefficients * min(samples, coefficients))

    def cost(self, x: np.ndarray | None = None) -> float:
        if x is not None:
            return self._work(self._enough(x), int(self._unsettled(x).sum()) + 1)
        part, samples, columns = self._random_part(), self.b.size, self.scale.size + 1
        if part < samples:
            return self._work(part, columns) + self._work(self._uncertain(part), columns)
        return self._work(samples, columns) if samples * columns <= MAX_ENTRIES else np.inf

    def solve(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> Outcome:
        """Solve as described in `Solver`; with `whole`, all coefficients are in S."""
        self.work, at = 0.0, self._evaluate(self._without_flat(x))
        if not whole:
            return self._near(at, stop)
        K, part = self.used, self._random_part()
        if part < self.b.size:
            at = self._evaluate(self._solve_part(part, at.x, stop))
            outcome = self._rounds(
                at, self._nearest(at, self._uncertain(part)), self._unsettled(at.x), stop
            )
        else:
            outcome = self._rounds(at, K.copy(), self.movable.copy(), stop)
        if (
            outcome.done and self.error > MAX_ERROR_SHARE * tol
        ):  # a smaller subproblem is more exact
            closer = self._near(self._evaluate(outcome.x), stop)
            outcome = closer if closer.done else outcome
        return outcome

    def _near(self, at: Evaluation, stop: Stop) -> Outcome:
        return self._rounds(at, self._nearest(at), self._unsettled(at.x), stop)

    def _without_flat(self, x: np.ndarray) -> np.ndarray:
        """Return x with the least coefficients of constant columns: an intercept replaces them."""
        x, flat = x.astype(np.float64), np.flatnonzero(self.flat)
        least = np.clip(0.0, self.terms.lower[flat], self.terms.upper[flat])
        if self.loss.intercept:
            x[-1] += self.center[flat] @ (x[flat] - least)
        x[flat] = least
        return x

    # ------------------------------------------------------------ a random part of many samples

    def _random_part(self) -> int:
        """Return the number of samples to begin with: all unless there are many per coefficient."""
        used = int(self.used.sum())
        part = int(np.sqrt(RANDOM_PART * used * (self.scale.size + 1.0)))
        return part if used > LEAST_RATIO * part else self.b.size

    def _uncertain(self, part: int) -> int:
        """Return how many samples may be on another side than the solution of a part predicts."""
        share = UNCERTAIN_SHARE * np.sqrt((self.scale.size + 1.0) / part)
        return int(self.b.size * min(1.0, share))

    def _solve_part(self, part: int, x: np.ndarray, stop: Stop) -> np.ndarray:
        draw = np.random.default_rng(0).choice(np.flatnonzero(self.used), part, replace=False)
        chosen, loss = np.sort(draw), copy(self.loss)
        rows = self.loss.A.rows(chosen)
        loss.A = as_source(rows.to_sparse() if hasattr(rows, "parts") else rows.to_dense())
        loss.b, loss.weight = self.b[chosen], self.weight[chosen] / self.weight[chosen].sum()
        solver = ActiveSet(loss, self.terms, self.coordinates)
        outcome = solver._rounds(solver._evaluate(x), solver.used, solver.movable.copy(), stop)
        self.work += solver.work
        return outcome.x

    # ------------------------------------------------------------ rounds

    def _rounds(self, at: Evaluation, K: np.ndarray, S: np.ndarray, stop: Stop) -> Outcome:
        """Solve subproblems until no sample and no column joins."""
        best = Outcome(at.x, None, False, 0, 0, 0, "samples and coefficients did not settle")
        lowest = at.fun
        for best.rounds in range(1, MAX_ROUNDS + 1):
            best.samples, best.coefficients = size, columns = int(K.sum()), int(S.sum())
            if size * (columns + 1) > MAX_ENTRIES:
                best.reason = "the subproblem is too large"
                break
            self.work += self._work(size, columns + 1)
            found, wanted = self._subproblem(at, K, S, stop), SAMPLE_GROWTH * size
            if found is not None:
                at = found
                wrong, excess = self._wrong(at, K), np.where(S, 0.0, self._excess(at))
                changed, settled = int(wrong.sum()), not (wrong.any() or excess.any())
                if at.fun <= lowest or settled:
                    lowest, best.x = at.fun, at.x
                    best.u = np.divide(at.r, self.weight, out=np.zeros_like(at.r), where=self.used)
                if settled:
                    best.done, best.reason = True, ""
                    break
                if changed <= MAX_WRONG_SHARE * size and size > SAMPLE_GROWTH * self._enough(at.x):
                    K = self._nearest(
                        at, SAMPLE_GROWTH * changed
                    )  # most of them are settled by now
                    at = self._evaluate(at.x)
                K = K | wrong
                S = S | _largest(excess, max(MIN_JOINING, columns))
                wanted = size + SAMPLE_GROWTH * changed if changed > MAX_WRONG_SHARE * size else 0
            if stop():
                best.reason = "there was no time for more"
                break
            if wanted:
                self.samples_per_coefficient *= 2.0
                K = K | self._nearest(at, wanted)
            if found is None and int(K.sum()) == size:
                best.reason = "no solution of the subproblem was found"
                break
        return best

    def _evaluate(self, x: np.ndarray, r: np.ndarray | None = None) -> Evaluation:
        """Evaluate x, with slopes of the sides of the samples by default."""
        w, terms = x[: self.scale.size], self.terms
        self.loss.A.dot(w, t := np.empty(self.b.size))
        if self.loss.intercept:
            t += x[-1]
        t -= self.b
        r = np.where(t > 0, self.high, self.low) if r is None else r
        self.loss.A.tdot(r, v := np.empty(w.size))
        fun = float(np.maximum(self.low * t, self.high * t).sum()) + terms.value(w)
        return Evaluation(x, t, r, v, fun)

    def _enough(self, x: np.ndarray) -> int:
        """Return the size of K: a few times the number of unknown coefficients."""
        size = int(self.samples_per_coefficient * (self._unsettled(x).sum() + 1)) + MIN_SAMPLES
        return min(size, self.b.size)

    def _nearest(self, at: Evaluation, number: int = 0) -> np.ndarray:
        """Return K, the samples nearest to their nonsmooth points."""
        used, number = np.flatnonzero(self.used), max(number, self._enough(at.x))
        if number < used.size:
            used = used[np.argpartition(np.abs(at.t[used]), number)[:number]]
        K = np.zeros(self.b.size, bool)
        K[used] = True
        return K

    def _unsettled(self, x: np.ndarray) -> np.ndarray:
        """Return S, the coefficients that are neither zero because of l1 nor at a bound."""
        w, terms = x[: self.scale.size], self.terms
        held = ((w == 0) & (terms.l1 > 0)) | (w <= terms.lower) | (w >= terms.upper)
        return np.asarray(~held & self.movable)

    def _wrong(self, at: Evaluation, K: np.ndarray) -> np.ndarray:
        """Return the samples outside K whose side contradicts their slope beyond rounding."""
        w = np.abs(at.x[: self.scale.size])
        terms = w @ (np.abs(self.center) + 1.0 / self.scale) + np.abs(at.x[w.size :]).sum()
        slack = TOLERANCE * self.unit + PREDICTION_ROUNDING * (terms + np.abs(self.b))
        other = np.where(at.r == self.low, at.t > slack, at.t < -slack)
        return np.asarray(~K & self.used & other)

    def _excess(self, at: Evaluation) -> np.ndarray:
        """Return by how much slopes violate the optimality condition, in units of their columns."""
        w, terms = at.x[: self.scale.size], self.terms
        slope = -(at.v + terms.l2 * w)
        low = np.where(w <= terms.lower, -np.inf, np.where(w > 0, terms.l1, -terms.l1))
        high = np.where(w >= terms.upper, np.inf, np.where(w < 0, -terms.l1, terms.l1))
        excess = self.scale * np.maximum(np.maximum(low - slope, slope - high), 0.0)
        allowed = TOLERANCE * (1.0 + self.scale * np.abs(self.center))
        return np.where(self.movable & (excess > allowed), excess, 0.0)

    # ------------------------------------------------------------ the subproblem

    def _subproblem(
        self, at: Evaluation, K: np.ndarray, S: np.ndarray, stop: Stop
    ) -> Evaluation | None:
        """Solve the subproblem. The result is None if that is not possible.

        The unknowns are y with x = scale unit y. So columns have unit size, and mean zero with an
        intercept, and t is in units of the targets. The objective is multiplied by
        samples / unit, so that slopes are about one.
        """
        rows, columns, count = np.flatnonzero(K), np.flatnonzero(S), self.b.size
        intercept = self.loss.intercept
        if not columns.size and not intercept:
            return at  # there are no unknowns
        source, rest = self.loss.A, np.where(S, 0.0, at.x[: self.scale.size])
        scale, center = self.scale[columns], self.center[columns]
        b, step, r = self.b[rows], scale * self.unit, at.r
        if rest.any():  # coefficients at bounds
            held = np.flatnonzero(rest)
            b = b - source.entries(rows, held) @ rest[held]
        A = np.multiply(source.entries(rows, columns) - center, scale, order="C")
        y, terms = at.x[columns] / step, self.terms.part(columns)
        q, total = np.zeros(columns.size), 0.0
        if rows.size < self.used.sum():
            total = r.sum()
            q = scale * (at.v[columns] - center * total) - r[rows] @ A
            total -= r[rows].sum()
        terms = Terms(
            count * terms.l1 * scale,
            count * terms.l2 * scale * step,
            terms.lower / step,
            terms.upper / step,
        )
        if intercept:
            A, q = np.column_stack([A, np.ones(len(A))]), np.append(q, total)
            y = np.append(y, (at.x[-1] + center @ at.x[columns]) / self.unit)
            terms = terms.extended(1)
        program = Program(
            A, b / self.unit, count * self.low[rows], count * self.high[rows], count * q, terms
        )
        size = max(count * at.fun / self.unit, MIN_OBJECTIVE)
        found = _solve_orthogonalized(program, y, size, stop)
        if found is None:
            return None
        y, multipliers, self.error = found
        x, r = at.x.copy(), r.copy()
        x[columns] = y[: columns.size] * step
        r[rows] = np.clip(multipliers / count, self.low[rows], self.high[rows])
        if intercept:
            x[-1] = y[-1] * self.unit - center @ x[columns]
        return self._evaluate(x, r)


def _solve_orthogonalized(
    program: Program, x: np.ndarray, size: float, stop: Stop
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Solve a program; without a penalty, in coordinates in which its columns are orthogonal.

    Nearly dependent columns are no difficulty then. Dependent ones have coefficients of zero.
    """
    terms, A = program.terms, program.A
    if terms.l2.any() or not terms.smooth or len(A) < A.shape[1]:
        return solve_program(program, x, size, stop)
    Q, R, order = qr(A, mode="economic", pivoting=True, check_finite=False)
    rank = int(np.count_nonzero(np.abs(R.diagonal()) > RANK * np.abs(R[0, 0])))
    Q, start, basis = np.ascontiguousarray(Q[:, :rank]), R[:rank] @ x[order], order[:rank]
    q = solve_triangular(R[:rank, :rank], program.q[basis], trans=1, check_finite=False)
    free = terms.part(np.arange(rank))  # the same for all coordinates
    inner = Program(Q, program.b, program.low, program.high, q, free)
    found = solve_program(inner, start, size, stop)
    if found is None:
        return None
    y, r, error = found
    x = np.zeros(x.size)
    x[basis] = solve_triangular(R[:rank, :rank], y, check_finite=False)
    return x, r, error


def _largest(excess: np.ndarray, number: int) -> np.ndarray:
    """Return where the largest nonzero entries are, at most `number` of them without ties."""
    if np.count_nonzero(excess) <= number:
        return excess > 0
    return np.asarray(excess >= np.partition(excess, -number)[-number])


def linear_program_terms(loss: LinearModel, penalty: Penalty) -> Terms | str:
    """Return the penalty's terms in a linear or quadratic program, or why there are none."""
    terms = terms_of(penalty, loss.A.shape[1], loss.l2)
    if isinstance(terms, str) or terms.labels is not None:
        return (
            f"{penalty.name} has no separable quadratic form, as a piecewise linear loss requires"
        )
    return "the rows of a linear operator are not accessible" if loss.A.opaque else terms
