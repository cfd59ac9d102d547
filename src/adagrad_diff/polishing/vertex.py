"""From the interior to the boundary: the equations that hold at a solution, solved to the last place.

Known are the samples at their kinks and the sides of the others, the coefficients that are not zero and the places of the
others. What is left are linear equations, for x that the samples at their kinks be there, and for their multipliers that the
gradient vanish:

    [ l2  B' ] [ x ]   [ -gradient of all the rest ]
    [ B   0  ] [ r ] = [ targets at the kinks      ]        B = A[at their kinks, not zero]

At a vertex B is square. Where it is not, or singular, solutions are many, and the nearest to the interior point is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack, qr

from .interior import Interior, Program, interior
from .outcome import Stop

SOLVES = 2
AS_GOOD = 1e-12  # of the objective: smaller errors are alike
GOOD_ENOUGH = 1e-5  # of the objective: a larger error is no solution
TINY = 1e-300
RANK = 1e-13  # relative size from which on a pivot counts
LEAST_ROOM = 1e-3  # of the width of its interval that a multiplier counts as having


def exact(
    program: Program, x: np.ndarray, size: float, stop: Stop
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """A solution, its multipliers and its error, from anywhere; `size` is that of the objective. None if there is none."""
    near = interior(program, x, size, stop)
    # Where rounding has blurred what is at its kink, the interior point itself may be the better answer; else exact zeros are.
    snapped = np.where(near.held, near.place, near.x)
    answers = [*_vertex(program, near, snapped), (snapped, near.r), (near.x, near.r)]
    slacks = np.array([program.slack(*answer) for answer in answers])
    if not np.isfinite(slacks).any():
        return None
    best = int(np.argmax(slacks <= max(2.0 * np.nanmin(slacks), AS_GOOD * size)))
    return (
        (*answers[best], float(slacks[best]) / size) if slacks[best] <= GOOD_ENOUGH * size else None
    )


def _vertex(
    program: Program, near: Interior, x: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What the interior point tells of, if that is a number."""
    free, kinks, terms = ~near.held, np.flatnonzero(near.at_kink), program.terms
    x, r = x.copy(), np.where(near.above, program.high, program.low)
    r[kinks] = near.r[kinks]
    columns = np.flatnonzero(free)
    A = program.A.array
    B = A[np.ix_(kinks, columns)]
    if (
        len(B) > B.shape[1]
    ):  # as many as can be independent: the multipliers of the others stay what they are
        width = (program.high - program.low)[kinks]
        room = np.minimum(r[kinks] - program.low[kinks], program.high[kinks] - r[kinks]) / width
        chosen = _independent(B * np.maximum(room, LEAST_ROOM)[:, None])
        kinks, B = kinks[chosen], B[chosen]
    rest = r.copy()
    rest[kinks] = 0.0
    slope, l2 = (
        program.q[free] + terms.l1[free] * np.sign(near.x[free]) + program.A.back(rest)[free],
        terms.l2[free],
    )
    equations = _Equations(B, l2)
    for _ in range(SOLVES):
        at_kinks = program.b[kinks] - A[kinks] @ x
        gradient = slope + l2 * x[free] + r[kinks] @ B
        dx, dr = equations.solve(-gradient, at_kinks)
        if not (np.isfinite(dx).all() and np.isfinite(dr).all()):
            return
        x[free] += dx
        r[kinks] += dr
    np.clip(r, program.low, program.high, out=r)
    np.clip(x, terms.lower, terms.upper, out=x)
    yield x, r


class _Equations:
    """Those above: by LU factors, of B if it is square and there is no l2; where they are singular, by the nearest solution."""

    def __init__(self, B: np.ndarray, l2: np.ndarray):
        self.B, self.l2, self.lu = B, l2, None
        rows, columns = B.shape
        if rows == columns and rows and not l2.any():
            self.lu = _factors(B)
        if l2.any():
            # In units of the coordinates' curvature, and of the rows: else a weak l2 would count as none.
            self.unit = 1.0 / np.sqrt(l2 + np.square(B).sum(axis=0) + TINY)
            B = B * self.unit
            self.row = 1.0 / np.sqrt(np.square(B).sum(axis=1) + TINY)
            B *= self.row[:, None]
            self.M = np.block([[np.diag(l2 * self.unit**2), B.T], [B, np.zeros((rows, rows))]])
            self.lu = _factors(self.M)

    def solve(self, h: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """l2 x + B' r = h, B x = g."""
        if self.l2.any():
            right = np.concatenate([h * self.unit, g * self.row])
            both = _nearest(self.M, right) if self.lu is None else lapack.dgetrs(*self.lu, right)[0]
            return both[: len(h)] * self.unit, both[len(h) :] * self.row
        if self.lu is not None:
            return lapack.dgetrs(*self.lu, g)[0], lapack.dgetrs(*self.lu, h, trans=1)[0]
        return _nearest(self.B, g), _nearest(self.B.T, h)


def _factors(M: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Of a square matrix; None if it is singular."""
    lu, pivots, failed = lapack.dgetrf(M)
    size = np.abs(lu.diagonal())
    return None if failed or not size.min() > RANK * size.max() else (lu, pivots)


def _independent(B: np.ndarray) -> np.ndarray:
    """Rows of which all others are combinations, the large ones first."""
    R, order = qr(B.T, mode="r", pivoting=True, check_finite=False)
    size = np.abs(R.diagonal())
    return np.sort(order[: np.count_nonzero(size > RANK * size[:1])])


def _nearest(M: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The shortest least-squares solution."""
    if not M.size:
        return np.zeros(M.shape[1])
    x: np.ndarray = np.linalg.lstsq(M, h, rcond=RANK)[0]
    return x
