"""Crossover: from an interior point to a vertex, whose equations are solved to full precision.

The interior point method identifies the samples at their nonsmooth points and the sides of the
others, the nonzero coefficients and the values of the others. What remains are linear equations: x
puts the samples at their nonsmooth points, and their multipliers make the gradient vanish.

    [ l2  B' ] [ x ]   [ -gradient of the other terms  ]
    [ B   0  ] [ r ] = [ targets at nonsmooth points   ]      B = A[at nonsmooth points, nonzero]

At a vertex B is square. Otherwise, or if B is singular, the solution nearest to the interior point
is used.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, qr

from .interior_point import InteriorPoint, InteriorSolution, Program
from .solver import Stop

MAX_SOLUTIONS = 2  # solutions of the equations, the first one included
EQUAL = 1e-12  # part of the objective: errors below it count as equal
MAX_ERROR = 1e-5  # part of the objective: an answer with a larger error is no solution
TINY = 1e-300
RANK = 1e-13  # smallest pivot, relative to the largest, of a matrix that counts as regular
LEAST_SLACK = 1e-3  # of a multiplier, as a part of its interval, when rows are chosen


def solve_program(
    program: Program, x: np.ndarray, size: float, stop: Stop
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return a solution, its multipliers and its relative error, from any x; or None.

    `size` is that of the objective.
    """
    near = InteriorPoint(program).solve(x, size, stop)
    # Exact zeros are preferred. But the interior point may be better, where rounding makes it
    # uncertain which samples are at nonsmooth points.
    snapped = np.where(near.held, near.place, near.x)
    answers = [_vertex(program, near, snapped), (snapped, near.r), (near.x, near.r)]
    slacks = np.array([program.slack(*answer) for answer in answers])
    if not np.isfinite(slacks).any():
        return None
    best = int(np.argmax(slacks <= max(2.0 * np.nanmin(slacks), EQUAL * size)))
    error = float(slacks[best]) / size
    return (*answers[best], error) if error <= MAX_ERROR else None


def _vertex(
    program: Program, near: InteriorSolution, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    free, rows, terms, A = ~near.held, np.flatnonzero(near.nonsmooth), program.terms, program.A
    x, r = x.copy(), np.where(near.above, program.high, program.low)
    r[rows] = near.r[rows]
    B = A[np.ix_(rows, np.flatnonzero(free))]
    if len(B) > B.shape[1]:  # keep independent rows: the multipliers of the others do not change
        slack = np.minimum(r - program.low, program.high - r)[rows]
        share = slack / (program.high - program.low)[rows]
        chosen = _independent(B * np.maximum(share, LEAST_SLACK)[:, None])
        rows, B = rows[chosen], B[chosen]
    equations, l2 = _Equations(B, terms.l2[free]), terms.l2[free]
    slope = program.q[free] + terms.l1[free] * np.sign(near.x[free])
    for _ in range(MAX_SOLUTIONS):
        gradient = slope + l2 * x[free] + (r @ A)[free]
        dx, dr = equations.solve(-gradient, program.b[rows] - A[rows] @ x)
        x[free] += dx
        r[rows] += dr
    return np.clip(x, terms.lower, terms.upper), np.clip(r, program.low, program.high)


class _Equations:
    """l2 x + B' r = h, B x = g: by LU factors, or the least-norm solution if they are singular."""

    def __init__(self, B: np.ndarray, l2: np.ndarray):
        self.M, self.curved, self.columns = B, bool(l2.any()), B.shape[1]
        if self.curved:
            # In units of the curvature of coordinates, and of the rows: otherwise a small l2 would
            # count as zero.
            unit = 1.0 / np.sqrt(l2 + np.square(B).sum(axis=0) + TINY)
            B = B * unit
            row = 1.0 / np.sqrt(np.square(B).sum(axis=1) + TINY)
            B *= row[:, None]
            corner = np.zeros((len(B), len(B)))
            self.M = np.block([[np.diag(l2 * unit**2), B.T], [B, corner]])
            self.unit = np.concatenate([unit, row])
        self.lu = None
        if len(self.M) == self.M.shape[1] > 0:
            lu, pivots, failed = lapack.dgetrf(self.M)
            size = np.abs(lu.diagonal())
            if not failed and size.min() > RANK * size.max():
                self.lu = lu, pivots

    def solve(self, h: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and r."""
        if not self.curved:
            return self._solve(g, False), self._solve(h, True)
        both = self.unit * self._solve(np.concatenate([h, g]) * self.unit, False)
        return both[: self.columns], both[self.columns :]

    def _solve(self, right: np.ndarray, transposed: bool) -> np.ndarray:
        if self.lu is not None:
            return np.asarray(lapack.dgetrs(*self.lu, right, trans=int(transposed))[0])
        M = self.M.T if transposed else self.M
        return np.linalg.lstsq(M, right, rcond=RANK)[0] if M.size else np.zeros(M.shape[1])


def _independent(B: np.ndarray) -> np.ndarray:
    """Return rows of which all others are combinations, large ones first."""
    R, order = qr(B.T, mode="r", pivoting=True, check_finite=False)
    size = np.abs(R.diagonal())
    return np.sort(order[: np.count_nonzero(size > RANK * size[:1])])
