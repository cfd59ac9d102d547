r"""Small corrections of a dual point, so that it is feasible for raw columns too.

Scaling u into the dual set because of one column costs (excess / lam), and the excess of a large column is at least what the
rounding of u makes of it. A correction

.. math:: \delta = M A_S y, \qquad (A_S^\top W M A_S)\, y = \text{what is missing on the violated columns } S

on the samples that have room, M being the room they have, costs next to nothing. It is added to the low part of u, which is a
pair of doubles, and repeated until nothing is left but the rounding of that.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from ..linalg import Block, Source
from ._extended import Extended, two_sum_arrays
from ._limits import limits, shrunk_groups
from ._rounding import EPS, factor

MOST_VIOLATED = 1500  # columns that are corrected together
MOST_OPERATIONS = 1.5e9  # multiplications of one least squares problem
CORRECTIONS = 6  # rounds of refinement
INSIDE = 8.0 * EPS  # how far inside its limits a coordinate should be, relative
DUST, EQUATION_DUST = (
    1e-21,
    1e-27,
)  # the same, and what is left of an equation, in units of what was added up for it
LITTLE_ROOM = (
    1e-9  # of a typical slope: samples nearer than that to an end of their domain are not moved
)
ROWS_FOR_EACH, ENOUGH_ENTRIES = (
    4,
    1_000_000,
)  # samples per column that may move, and entries of them in any case
WELL_CONDITIONED = 1e-4  # the same for a Gram matrix to be good enough
INDEPENDENT = 1e-11  # the part of a column that is not in the span of those before it


def most_rows(A: Source, columns: int) -> int:
    """Samples that are moved at most, so that so many columns are feasible."""
    wanted = max(ROWS_FOR_EACH * columns + 64, int(ENOUGH_ENTRIES * A.shape[0] / max(A.size, 1)))
    return min(wanted, max(columns + 64, int(MOST_OPERATIONS / max(columns, 1) ** 2)))


class DualPoint:
    """u + low, and v = A'(w (u + low)) with the sum of w u for an intercept."""

    def __init__(self, problem: Extended, u: np.ndarray, inner: float = 0.0):
        """`inner`: the part of the way to a point inside of the domain of l*, so that all samples have some room."""
        self.problem, self._least = problem, 0.1 * inner or LITTLE_ROOM
        self.u = np.clip(u.astype(np.float64), problem.low, problem.high)
        if inner:
            low, high = problem.low, problem.high
            self.u += inner * (np.where((low < 0) & (high > 0), 0.0, 0.5 * (low + high)) - self.u)
        self.u[problem.weight == 0] = 0.0
        self.low = np.zeros(self.u.size)
        self.v = problem.products(self.u, self.low)
        self.terms = problem.dual.penalty.quadratic_terms(problem.features)
        self.ends = limits(self.terms, problem.loss.l2, problem.features)
        if problem.loss.intercept:
            low, high = self.ends
            self.ends = np.append(low, 0.0), np.append(high, 0.0)
        self.equal = self.ends[0] == self.ends[1]  # where v must be zero
        self._system: Factor | None = None

    def error(self) -> np.ndarray:
        """Of v."""
        return self.problem.unknown(self.v)

    def slack(self) -> np.ndarray:
        """The distance of each sample from the ends of its domain, at most a typical slope; negative outside."""
        low, high = self.problem.low, self.problem.high
        typical = float(np.abs(self.u).max()) or 1.0
        return np.asarray(
            np.minimum(np.minimum((self.u - low) + self.low, (high - self.u) - self.low), typical)
        )

    def room(self) -> np.ndarray:
        """How far each sample may move: not at all, if that is very little."""
        room = self.slack()
        room[(room < self._least * room.max()) | (self.problem.weight == 0)] = 0.0
        return room

    def system(self, chosen: np.ndarray) -> Factor | None:
        """The equations of some columns on the samples with the most room; None if there are none."""
        if self._system is None or not np.array_equal(self._system.chosen, chosen):
            self._system = factor_of(self.problem, self.room(), chosen)
        return self._system

    def move(self, movable: Movable, change: np.ndarray) -> None:
        """Add a change at some samples."""
        samples = movable.samples
        high, lost = two_sum_arrays(self.u[samples], change)
        high, low = two_sum_arrays(high, self.low[samples] + lost)
        self.u[samples], self.low[samples] = high, low
        self.problem.add_products(self.v, movable.rows, samples, change)

    def missing(self) -> tuple[np.ndarray, np.ndarray]:
        """What to add to v so that it is a little inside its limits, or meets them if they are equal; and where it is not."""
        (low, high), v, error = self.ends, self.v, self.error()
        size = np.maximum(-low, high)
        need = 2.0 * error + DUST * v[2] + INSIDE * np.where(size < np.inf, size, 0.0)
        above, below = (v[0] - high) + v[1], (low - v[0]) - v[1]
        over, under = above + need > 0, below + need > 0
        missing = np.where(over, -(above + 2.0 * need), np.where(under, below + 2.0 * need, 0.0))
        missing[self.equal] = below[self.equal]
        wrong = np.where(self.equal, np.abs(below) > error + EQUATION_DUST * v[2], over | under)
        features = self.problem.features
        if not self.problem.loss.l2:
            change = shrunk_groups(self.terms, v[0, :features], 2.0 * INSIDE) - v[0, :features]
            missing[:features] += change
            wrong[:features] |= change != 0
        return missing, wrong


class Movable(NamedTuple):
    """Samples that have room, their rows of A, the room, and their weights."""

    samples: np.ndarray
    rows: Block
    room: np.ndarray
    weight: np.ndarray
    features: int

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        """Some columns of their rows, that of an intercept being the one after the features."""
        real = np.minimum(chosen, self.features - 1)
        array = getattr(self.rows, "array", None)
        dense: np.ndarray = (
            array[:, real] if array is not None else self.rows.to_sparse()[:, real].toarray()
        )
        dense[:, chosen == self.features] = 1.0
        return dense


class Factor:
    """B = sqrt(W M) A_S with columns of size one, and Y, for which Y B = 1; columns that depend on others are left out."""

    def __init__(self, movable: Movable, chosen: np.ndarray):
        self.movable, self.chosen = movable, chosen
        B = np.sqrt(movable.weight * movable.room)[:, None] * movable.columns(chosen)
        self.sizes = np.linalg.norm(B, axis=0)
        self.sizes[self.sizes == 0] = 1.0
        B /= self.sizes
        self.lever = np.sqrt(movable.room / movable.weight)  # from q = sqrt(W / M) delta to delta
        self.independent, self.dependent = np.arange(chosen.size), np.empty(0, int)
        G = B.T @ B
        with contextlib.suppress(np.linalg.LinAlgError):
            if len(B) >= chosen.size and np.diag(np.linalg.cholesky(G)).min() > WELL_CONDITIONED:
                self.B, self.Y = (
                    B,
                    np.linalg.solve(G, B.T),
                )  # three calls of BLAS, where a decomposition has many
                return
        Q, R = np.linalg.qr(B)
        pivots = np.zeros(chosen.size)
        pivots[: len(R)] = np.abs(np.diag(R))
        kept = pivots > INDEPENDENT
        self.independent, self.dependent = np.flatnonzero(kept), np.flatnonzero(~kept)
        if self.dependent.size:
            B = B[:, kept]
            Q, R = np.linalg.qr(B)
        self.B, self.Y = B, np.linalg.solve(R, Q.T) if kept.any() else np.empty((0, len(B)))

    def change(self, missing: np.ndarray) -> np.ndarray:
        """delta with A_S'W delta = missing, as small as possible."""
        return np.asarray(self.lever * ((missing / self.sizes)[self.independent] @ self.Y))

    def smallest(self) -> float:
        """At most the smallest singular value of B: Y B = 1 - E is seen to hold, with a small E."""
        norm, size = float(np.linalg.norm(self.Y)), float(np.linalg.norm(self.B))
        if norm == 0:
            return np.inf
        far = (
            float(np.linalg.norm(np.eye(len(self.Y)) - self.Y @ self.B))
            + factor(len(self.B) + 8) * norm * size
        )
        return (1.0 - far) / norm * (1.0 - 1e-6) if far < 1.0 else 0.0


def factor_of(problem: Any, room: np.ndarray, chosen: np.ndarray) -> Factor | None:
    """Some columns on the samples with the most room: all of these, if they are not many more than the columns."""
    A, samples = problem.loss.A, np.flatnonzero(room)
    if (chosen.size + 64) * chosen.size**2 > MOST_OPERATIONS:
        return None
    if samples.size > (most := most_rows(A, chosen.size)):
        samples = np.sort(samples[np.argpartition(-room[samples], most)[:most]])
    if samples.size == 0:
        return None
    return Factor(
        Movable(samples, A.rows(samples), room[samples], problem.weight[samples], A.shape[1]),
        chosen,
    )


def corrected(point: DualPoint) -> None:
    """Move the point into the domain of the penalty's conjugate, as far as that is possible; equations to what pairs can do."""
    chosen = np.zeros(point.equal.size, bool)
    for _ in range(CORRECTIONS):
        missing, wrong = point.missing()
        if not wrong.any():
            return
        chosen |= wrong
        system = (
            point.system(np.flatnonzero(chosen))
            if np.count_nonzero(chosen) <= MOST_VIOLATED
            else None
        )
        if system is None:
            return
        change = system.change(missing[chosen])
        far = float(np.max(np.abs(change) / point.slack()[system.movable.samples]))
        if not 0 <= far < np.inf:
            return
        point.move(system.movable, change if far <= 0.5 else change * (0.5 / far))
