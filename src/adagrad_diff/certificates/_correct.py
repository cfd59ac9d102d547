r"""Small corrections of a dual point, so that it is feasible for raw columns too.

Scaling u into the dual set because of one column costs (excess / lam), and the excess of a large column is at least what the
rounding of u makes of it. A correction

.. math:: \delta = M A_S y, \qquad (A_S^\top W M A_S)\, y = \text{what is missing on the violated columns } S

on the samples that have room, M being the room they have, costs next to nothing. It is added to the low part of u, which is a
pair of doubles, and repeated until nothing is left but the rounding of that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data import Block
from ..penalties import GroupL2, SparseGroupL2
from ._extended import Extended, two_sum_arrays
from ._limits import limits, shrunk_groups
from ._rounding import EPS, factor

MOST_VIOLATED = 1500  # columns that are corrected together
CORRECTIONS = 6  # rounds of refinement
INSIDE = 8.0 * EPS  # how far inside its limits a coordinate should be, relative
DUST = 1e-21  # the same, in units of what was added up for it
LITTLE_ROOM = 1e-9  # of a typical slope: samples nearer than that to an end of their domain are not moved
ROWS_FOR_EACH, ENOUGH_ENTRIES = 4, 1_000_000  # samples per column that may move, and entries of them in any case
INDEPENDENT = 1e-11  # part of the largest pivot


class DualPoint:
    """u + low, and v = A'(w (u + low)) with the sum of w u for an intercept."""

    def __init__(self, problem: Extended, u: np.ndarray):
        self.problem = problem
        self.u = np.clip(u.astype(np.float64), problem.low, problem.high)
        self.u[problem.weight == 0] = 0.0
        self.low = np.zeros(self.u.size)
        self.v = problem.products(self.u, self.low)

    def error(self) -> np.ndarray:
        """Of v."""
        return self.problem.unknown(self.v)

    def room(self) -> np.ndarray:
        """How far each sample may move, at most a typical slope."""
        typical = float(np.abs(self.u).max()) or 1.0
        room = np.minimum(np.minimum(self.u - self.problem.low, self.problem.high - self.u), typical)
        room[(room < LITTLE_ROOM * typical) | (self.problem.weight == 0)] = 0.0
        return np.asarray(room)

    def move(self, rows: Block, samples: np.ndarray, change: np.ndarray) -> None:
        """Add a change at some samples."""
        high, lost = two_sum_arrays(self.u[samples], change)
        high, low = two_sum_arrays(high, self.low[samples] + lost)
        self.u[samples], self.low[samples] = high, low
        self.problem.add_products(self.v, rows, samples, change)


class Movable(NamedTuple):
    """Samples that have room, their rows of A, and the room."""

    samples: np.ndarray
    rows: Block
    room: np.ndarray

    def columns(self, chosen: np.ndarray, features: int) -> np.ndarray:
        """Some columns of their rows, that of an intercept being the one after the features."""
        if isinstance(array := getattr(self.rows, "array", None), np.ndarray):
            dense = array[:, np.minimum(chosen, features - 1)].astype(np.float64)
        else:
            dense = self.rows.to_sparse()[:, np.minimum(chosen, features - 1)].toarray()
        dense[:, chosen == features] = 1.0
        return np.asarray(dense)


def movable(point: DualPoint, columns: int) -> Movable:
    """The samples with the most room: all of them if they are not many more than the columns."""
    room, A = point.room(), point.problem.loss.A
    samples = np.flatnonzero(room)
    most = max(ROWS_FOR_EACH * columns + 64, int(ENOUGH_ENTRIES * A.shape[0] / max(A.size, 1)))
    if samples.size > most:
        samples = np.sort(samples[np.argpartition(-room[samples], most)[:most]])
    return Movable(samples, A.rows(samples), room[samples])


class Factor:
    """B = sqrt(W M) A_S with columns of size one, as Q R; columns that depend on others are left out."""

    def __init__(self, problem: Extended, movable: Movable, chosen: np.ndarray):
        from scipy.linalg import qr

        weight = problem.weight[movable.samples]
        B = np.sqrt(weight * movable.room)[:, None] * movable.columns(chosen, problem.features)
        self.sizes = np.linalg.norm(B, axis=0)
        self.sizes[self.sizes == 0] = 1.0
        B /= self.sizes
        Q, R, order = qr(B, mode="economic", pivoting=True, check_finite=False)
        pivots = np.abs(np.diag(R))
        rank = int(np.count_nonzero(pivots > INDEPENDENT * pivots.max(initial=0.0)))
        self.chosen, self.independent, self.dependent = chosen, order[:rank], order[rank:]
        self.Q, self.R, self.B = Q[:, :rank], R[:rank, :rank], B[:, self.independent]
        self.lever = np.sqrt(movable.room / weight)  # from q = sqrt(W / M) delta to delta

    def change(self, missing: np.ndarray) -> np.ndarray:
        """delta with A_S'W delta = missing, as small as possible."""
        from scipy.linalg import solve_triangular

        right = (missing / self.sizes)[self.independent]
        y = solve_triangular(self.R, right, trans="T", check_finite=False) if right.size else right
        return np.asarray(self.lever * (self.Q @ y))

    def smallest(self) -> float:
        """At most the smallest singular value of B. Y B = 1 - E is seen to hold, Y being nearly its inverse."""
        from scipy.linalg import solve_triangular

        if not self.independent.size:
            return np.inf
        Y = solve_triangular(self.R, self.Q.T, check_finite=False)
        norm, size = float(np.linalg.norm(Y)), float(np.linalg.norm(self.B))
        far = float(np.linalg.norm(np.eye(len(Y)) - Y @ self.B)) + factor(len(self.B) + 8) * norm * size
        return (1.0 - far) / norm * (1.0 - 1e-6) if far < 1.0 else 0.0


def corrected(point: DualPoint) -> None:
    """Move the point into the domain of the penalty's conjugate, as far as that is possible; equations to what pairs can do."""
    problem = point.problem
    penalty, features = problem.dual.penalty, problem.features
    low, high = limits(penalty, problem.loss.l2, features)
    if problem.loss.intercept:
        low, high = np.append(low, 0.0), np.append(high, 0.0)
    groups = isinstance(penalty, GroupL2 | SparseGroupL2) and not problem.loss.l2
    equal, chosen, here, system = low == high, np.zeros(low.size, bool), None, None
    for _ in range(CORRECTIONS):
        missing, wrong = missing_of(point, low, high, equal)
        if groups:
            target = shrunk_groups(penalty, point.v[0, :features], 2.0 * INSIDE)
            missing[:features] += target - point.v[0, :features]
            wrong[:features] |= target != point.v[0, :features]
        if not wrong.any() or np.count_nonzero(wrong | chosen) > MOST_VIOLATED:
            return
        if here is None or system is None or (wrong & ~chosen).any():
            chosen |= wrong
            here = movable(point, int(chosen.sum()))
            if here.samples.size == 0:
                return
            system = Factor(problem, here, np.flatnonzero(chosen))
        change = system.change(missing[chosen])
        far = float(np.max(np.abs(change) / here.room, initial=0.0))
        if not far < np.inf:
            return
        point.move(here.rows, here.samples, change if far <= 0.5 else change * (0.5 / far))


def missing_of(point: DualPoint, low: np.ndarray, high: np.ndarray, equal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What to add to v so that it is a little inside its limits, and where it is not."""
    v, error = point.v, point.error()
    missing, wrong = np.zeros(low.size), np.zeros(low.size, bool)
    for end, side in ((low, 1.0), (high, -1.0)):
        known = np.isfinite(end)
        need = np.where(known, INSIDE * np.abs(np.where(known, end, 0.0)) + 2.0 * error + DUST * v[2], 0.0)
        slack = np.where(known, side * ((v[0] - np.where(known, end, 0.0)) + v[1]), np.inf)
        outside = ~equal & (slack < need)
        missing[outside] = side * (2.0 * need - slack)[outside]
        wrong |= outside
    far = equal & (np.abs((v[0] - np.where(equal, low, 0.0)) + v[1]) > error + DUST * 1e-6 * v[2])
    missing[far] = -((v[0] - np.where(equal, low, 0.0)) + v[1])[far]
    return missing, wrong | far
