r"""Losses with kinks: the few samples and coefficients that are not settled are a small linear or quadratic program.

S are the coefficients that are not zero (or not at a bound), K the samples nearest to their kinks. All others keep the side
that they are on, so that their losses are one linear term. The small problem is solved exactly; then all samples and all
columns are looked at. Those that are on another side than was said join K, those that want to leave zero join S, until there
are none: then the multipliers of the small problem and the slopes of the others are a dual point of the large one.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from ..linalg import as_source
from ..losses import LinearModel
from ..losses.base import Coordinates
from .interior import Program
from .manifold import Pieces
from .normal import Matrix
from .outcome import Outcome, Solver, Stop
from .vertex import exact

MOST_ROUNDS = 30  # at most
NEAR_SAMPLES, LEAST_SAMPLES = 3.0, 50  # in K: per coefficient in S, and at least
# Of N samples and p coefficients sqrt(SOME_SAMPLES N p) come first, if they are few of N; then a part UNSURE sqrt(p / those).
SOME_SAMPLES, MANY_SAMPLES, UNSURE = 20, 5, 2.4
MUCH = 4  # times as many samples in K as there should be
WRONG = 0.1  # part of K that may have been on the wrong side; more, and K is doubled
SHARE = 0.1  # of the tolerance that the error of a small problem may have
ALLOWED = 1e-11  # of the size of a column: what its slope may have too much
JOIN_AT_ONCE = 50  # columns that may join S at once, or as many as it has
LEAST_OBJECTIVE = 1e-6  # of an objective in units of the targets and samples: less counts as this
MOST_ENTRIES = 40_000_000  # of a small problem
STEP_COUNT, OPERATION, STEP_SECONDS = (
    18,
    7e-11,
    1.5e-4,
)  # steps, seconds of a multiplication and of a step: to guess its time


class Kinked(Solver):
    """The solver of one problem."""

    def __init__(self, loss: LinearModel, terms: Pieces, coordinates: Coordinates):
        self.loss, self.features = loss, loss.A.shape[1]
        self.scale = np.ones(self.features) if coordinates.scale is None else coordinates.scale
        self.center = (
            np.zeros(self.features)
            if coordinates.center is None
            else coordinates.center.astype(np.float64)
        )
        self.unit = coordinates.unit  # of predictions
        self.weight, self.b = loss.weight.astype(np.float64), loss.b.astype(np.float64)
        self.low, self.high = (
            self.weight * np.asarray(end, np.float64) for end in loss.slopes(loss.b, loss.theta)
        )
        self.terms, self.movable = (
            terms,
            terms.lower < terms.upper,
        )  # with the ridge term of the loss
        self.flat = np.zeros(self.features, bool) if coordinates.flat is None else coordinates.flat
        self.movable &= ~self.flat
        self.near = NEAR_SAMPLES  # grows where it was too small
        self.error = 0.0  # of the last small problem, relative

    def seconds(self, samples: int, coefficients: int) -> float:
        """A guess at the time of a small problem."""
        return STEP_COUNT * (
            STEP_SECONDS + OPERATION * samples * coefficients * min(samples, coefficients)
        )

    def cost(self) -> float:
        part = self._part()
        if part < self.b.size:
            return self.seconds(part, self.features + 1) + self.seconds(
                self._band(part), self.features + 1
            )
        return (
            self.seconds(self.b.size, self.features + 1)
            if self.b.size * self.features <= MOST_ENTRIES
            else np.inf
        )

    def guess(self, x: np.ndarray) -> float:
        return self.seconds(self._enough(x), int(self._unsettled(x).sum()) + 1)

    def solve(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> Outcome:
        """As `Solver` says; with all samples and coefficients at once, if it is to be the `whole` problem."""
        self.spent, now = 0.0, self._at(self._start(x))
        if not whole:
            return self._rounds(now, self._nearest(now), self._unsettled(now.x), stop)
        if (part := self._part()) < self.b.size:
            now = self._at(self._of_part(part, now.x, stop))
            answer = self._rounds(
                now, self._nearest(now, self._band(part)), self._unsettled(now.x), stop
            )
        else:
            answer = self._rounds(now, self.weight > 0, self.movable.copy(), stop)
        if answer.done and self.error > SHARE * tol:  # much of what is settled now was in the way
            now = self._at(answer.x)
            closer = self._rounds(now, self._nearest(now), self._unsettled(now.x), stop)
            answer = closer if closer.done else answer
        return answer

    def _start(self, x: np.ndarray) -> np.ndarray:
        """x, with coefficients of nothing as small as they may be: an intercept takes their part."""
        x = x.astype(np.float64)
        flat = np.flatnonzero(self.flat)
        if flat.size:
            least = np.clip(0.0, self.terms.lower[flat], self.terms.upper[flat])
            if self.loss.intercept:
                x[-1] += self.center[flat] @ (x[flat] - least)
            x[flat] = least
        return x

    # ------------------------------------------------------------ many samples: first some of them

    def _part(self) -> int:
        """How many samples to begin with: all, unless there are many per coefficient."""
        used = int(np.count_nonzero(self.weight > 0))
        few = int(np.sqrt(SOME_SAMPLES * used * (self.features + 1.0)))
        return few if used > MANY_SAMPLES * few else self.b.size

    def _band(self, part: int) -> int:
        """How many samples may be on another side than the answer for some of them says: by their error, about."""
        return int(self.b.size * min(1.0, UNSURE * np.sqrt((self.features + 1.0) / part)))

    def _of_part(self, part: int, x: np.ndarray, stop: Stop) -> np.ndarray:
        """The answer for some of the samples."""
        chosen = np.sort(
            np.random.default_rng(0).choice(np.flatnonzero(self.weight > 0), part, replace=False)
        )
        rows, loss = self.loss.A.rows(chosen), copy(self.loss)
        loss.A, loss.b = (
            as_source(rows.to_sparse() if hasattr(rows, "parts") else rows.to_dense()),
            self.b[chosen],
        )
        loss.weight = self.weight[chosen] / self.weight[chosen].sum()
        solver = Kinked(
            loss, self.terms, Coordinates(loss, self.scale, self.center, self.unit, self.flat)
        )
        answer = solver._rounds(solver._at(x), loss.weight > 0, solver.movable.copy(), stop)
        self.spent += solver.spent
        return answer.x

    def _rounds(self, now: Place, K: np.ndarray, S: np.ndarray, stop: Stop) -> Outcome:
        """Small problems until nothing joins."""
        best = Outcome(now.x, None, False, 0, 0, 0, "samples and coefficients did not settle")
        lowest = now.fun
        for rounds in range(1, MOST_ROUNDS + 1):
            best.rounds, best.samples, best.coefficients = rounds, int(K.sum()), int(S.sum())
            if best.samples * (best.coefficients + 1) > MOST_ENTRIES:
                best.reason = "the small problem is too large"
                break
            self.spent += self.seconds(best.samples, best.coefficients + 1)
            found = self._small(now, K, S, stop)
            if found is not None:
                now = found
                wrong, excess = self._wrong(now, K), np.where(S, 0.0, self._excess(now))
                if now.fun <= lowest or not (wrong.any() or excess.any()):
                    lowest, best.x, best.u = now.fun, now.x, self._slopes(now.r)
                if not (wrong.any() or excess.any()):
                    best.done, best.reason = True, ""
                    break
                if wrong.sum() <= WRONG * best.samples and best.samples > MUCH * self._enough(
                    now.x
                ):
                    K = self._nearest(
                        now, MUCH * int(wrong.sum())
                    )  # now that x is so near, most of them are settled
                    now = self._at(now.x)  # and on a side
                K |= wrong
                S |= _largest(excess, max(JOIN_AT_ONCE, best.coefficients))
            if stop():
                best.reason = "there was no time for more"
                break
            if found is None or wrong.sum() > WRONG * best.samples:
                self.near *= 2.0
                K |= self._nearest(
                    now,
                    MUCH * best.samples
                    if found is None
                    else best.samples + MUCH * int(wrong.sum()),
                )
            if found is None and int(K.sum()) == best.samples:  # there is nothing to add
                best.reason = "the small problem has no solution that can be found"
                break
        return best

    # ------------------------------------------------------------ all samples and columns

    def _at(self, x: np.ndarray, r: np.ndarray | None = None) -> Place:
        """Predictions and objective at x; slopes are those of the sides that samples are on, unless others are given."""
        z = np.empty(self.b.size)
        self.loss.A.dot(x[: self.features], z)
        if self.loss.intercept:
            z += x[-1]
        z -= self.b
        if r is None:
            r = np.where(z > 0, self.high, self.low)
        v = np.empty(self.features)
        self.loss.A.tdot(r, v)
        part, terms = x[: self.features], self.terms
        fun = float(
            np.maximum(self.low * z, self.high * z).sum()
            + terms.l1 @ np.abs(part)
            + 0.5 * (terms.l2 * part) @ part
        )
        return Place(x, z, r, v, fun)

    def _enough(self, x: np.ndarray) -> int:
        """How many samples K has: a few times as many as there are coefficients to find."""
        return min(int(self.near * (self._unsettled(x).sum() + 1)) + LEAST_SAMPLES, self.b.size)

    def _nearest(self, now: Place, number: int = 0) -> np.ndarray:
        """K: the samples nearest to their kinks."""
        used, number = np.flatnonzero(self.weight > 0), max(number, self._enough(now.x))
        K = np.zeros(self.b.size, bool)
        if number < used.size:
            used = used[np.argpartition(np.abs(now.t[used]), number)[:number]]
        K[used] = True
        return K

    def _unsettled(self, x: np.ndarray) -> np.ndarray:
        """S: coefficients that are neither zero because of a norm nor at a bound."""
        part, terms = x[: self.features], self.terms
        held = ((part == 0) & (terms.l1 > 0)) | (part <= terms.lower) | (part >= terms.upper)
        return np.asarray(~held & self.movable)

    def _wrong(self, now: Place, K: np.ndarray) -> np.ndarray:
        """Samples outside K on another side than their slope says."""
        slack = ALLOWED * self.unit
        return np.asarray(
            ~K & (self.weight > 0) & np.where(now.r == self.low, now.t > slack, now.t < -slack)
        )

    def _excess(self, now: Place) -> np.ndarray:
        """By how much, in units of its size, each column's slope is more than its coefficient can hold against."""
        x, terms = now.x[: self.features], self.terms
        pull = -(now.v + terms.l2 * x)
        low = np.where(x <= terms.lower, -np.inf, np.where(x > 0, terms.l1, -terms.l1))
        high = np.where(x >= terms.upper, np.inf, np.where(x < 0, -terms.l1, terms.l1))
        excess = self.scale * np.maximum(np.maximum(low - pull, pull - high), 0.0)
        return np.where(
            self.movable & (excess > ALLOWED * (1.0 + self.scale * np.abs(self.center))),
            excess,
            0.0,
        )

    def _slopes(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(np.divide(r, self.weight, out=np.zeros_like(r), where=self.weight > 0))

    # ------------------------------------------------------------ the small problem

    def _small(self, now: Place, K: np.ndarray, S: np.ndarray, stop: Stop) -> Place | None:
        """Solve it; None if that is not possible.

        In coordinates y in which columns have unit size and, with an intercept, mean zero, and t is in units of the targets:
        x = scale unit y. The objective is multiplied by the number of samples / unit, so that slopes are about one.
        """
        samples, columns, many = np.flatnonzero(K), np.flatnonzero(S), self.b.size
        if not columns.size and not self.loss.intercept:
            return now  # nothing is unknown: which columns want to join is seen from here
        source, rest = self.loss.A, np.where(S, 0.0, now.x[: self.features])
        b, step = self.b[samples].copy(), self.scale[columns] * self.unit
        if rest.any():  # coefficients at bounds
            held = np.flatnonzero(rest)
            b -= source.entries(samples, held) @ rest[held]
        A = np.multiply(
            source.entries(samples, columns) - self.center[columns], self.scale[columns], order="C"
        )
        q = many * self.scale[columns] * (now.v - self.center * now.r.sum())[columns] - many * (
            now.r[samples] @ A
        )
        y = now.x[columns] / step
        terms = self.terms.part(columns)
        l1, l2 = many * terms.l1 * self.scale[columns], many * terms.l2 * self.scale[columns] * step
        lower, upper = terms.lower / step, terms.upper / step
        if self.loss.intercept:
            A, q = (
                np.column_stack([A, np.ones(len(A))]),
                np.append(q, many * (now.r.sum() - now.r[samples].sum())),
            )
            y = np.append(y, (now.x[-1] + self.center[columns] @ now.x[columns]) / self.unit)
            l1, l2, lower, upper = (
                np.append(l1, 0.0),
                np.append(l2, 0.0),
                np.append(lower, -np.inf),
                np.append(upper, np.inf),
            )
        terms = Pieces(l1, l2, lower, upper)
        program = Program(
            Matrix(A), b / self.unit, many * self.low[samples], many * self.high[samples], q, terms
        )
        found = exact(program, y, max(many * now.fun / self.unit, LEAST_OBJECTIVE), stop)
        if found is None:
            return None
        y, multipliers, self.error = found
        x, r = now.x.copy(), now.r.copy()
        x[columns] = y[: columns.size] * step
        r[samples] = np.clip(multipliers / many, self.low[samples], self.high[samples])
        if self.loss.intercept:
            x[-1] = y[-1] * self.unit - self.center[columns] @ x[columns]
        return self._at(x, r)


class Place(NamedTuple):
    """A point, and what is known there."""

    x: np.ndarray
    t: np.ndarray  # A x - b
    r: np.ndarray  # weights times slopes
    v: np.ndarray  # A' r
    fun: float


def _largest(excess: np.ndarray, number: int) -> np.ndarray:
    """Where the largest entries are that are not zero, so many of them at most."""
    if np.count_nonzero(excess) <= number:
        return excess > 0
    return np.asarray(excess >= np.partition(excess, -number)[-number])
