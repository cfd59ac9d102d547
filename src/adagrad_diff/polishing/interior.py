r"""The small problem by an interior point method: Mehrotra's predictor and corrector for functions of straight pieces.

.. math:: \min_x\; \langle q, x\rangle + \sum_k \sigma_k(\langle a_k, x\rangle - b_k)
          + \sum_i l_{1,i} |x_i| + \tfrac12 l_{2,i} x_i^2, \qquad lower \le x \le upper, \qquad
          \sigma_k(t) = \max_{low_k \le r \le high_k} r t

Norms and bounds of coordinates are rows of the same kind, with the identity for A: r in [-l1, l1], or in a half-line. So there
is one multiplier r per row, and at a solution

.. math:: q + l_2 x + A^\top r = 0, \qquad A x - b = v - z, \qquad (r - low) z = (high - r) v = 0, \qquad z, v \ge 0.

Newton's method on these equations, with mu instead of the zeros, takes one factorisation of A' D A + a diagonal per step, or of
a matrix of the size of the rows if there are fewer of them. It ends near the middle of the set of solutions, strictly
complementary, also where there are many: so it tells which samples are at their kinks (`vertex` does the rest).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..linalg import kernels
from .manifold import Pieces
from .normal import Matrix, Normal
from .outcome import Stop

STEPS = 80  # at most
NEARLY = 0.9995  # of the way to the boundary
TO_CENTER = (
    3  # power of the progress of the predictor that decides how far to go towards the middle
)
END_ERROR = 1e-11  # of the objective: where it ends
WORSE, TOO_FAR = (
    1e4,
    1e12,
)  # an error so much larger than the least, a point that far from the first one: there is no way on


@dataclass
class Program:
    """The problem above."""

    A: Matrix  # (rows, coordinates) in C order, columns of about unit size
    b: np.ndarray
    low: np.ndarray
    high: np.ndarray
    q: np.ndarray
    terms: Pieces

    def slack(self, x: np.ndarray, r: np.ndarray) -> float:
        """How far x and r are from a solution: what the terms of the objective and their conjugates are more than <x, ...>.

        A slope that no bound stops costs as much as going one unit farther than x does.
        """
        t, terms = self.A.times(x) - self.b, self.terms
        pull = -(self.q + terms.l2 * x + self.A.back(r))
        far = np.abs(x) + 1.0
        upper, lower = (
            np.where(terms.upper < np.inf, terms.upper, far),
            np.where(terms.lower > -np.inf, terms.lower, -far),
        )
        conjugate = (
            np.maximum(pull - terms.l1, 0.0) * upper + np.minimum(pull + terms.l1, 0.0) * lower
        )
        rows = np.maximum(self.low * t, self.high * t) - r * t
        return float(np.abs(rows).sum() + np.abs(terms.l1 * np.abs(x) - pull * x + conjugate).sum())


@dataclass
class Interior:
    """Where it has ended. Of the coordinates, what the rows of the norms and bounds say."""

    x: np.ndarray
    r: np.ndarray  # of the rows of A
    at_kink: np.ndarray  # rows of A with low < r < high
    above: np.ndarray  # rows of A with r = high (if they are not at their kink)
    held: np.ndarray  # coordinates that are zero, or at a bound, whose place is `place`
    place: np.ndarray
    error: float  # of the objective, about


def interior(program: Program, x: np.ndarray, size: float, stop: Stop) -> Interior:
    """Solve from anywhere, as far as rounding lets one; `size` is that of the objective."""
    rows = Rows(program)
    with np.errstate(all="ignore"):  # what overflows ends it
        return rows.solve(x, size, stop)


class Rows:
    """All rows: those of A, then of the norm, of the lower and the upper bounds."""

    def __init__(self, program: Program):
        terms, self.m = program.terms, len(program.b)
        self.program = program
        normed, above, below = (
            np.flatnonzero(w) for w in (terms.l1 > 0, terms.lower > -np.inf, terms.upper < np.inf)
        )
        self.parts = normed, above, below
        self.columns = np.concatenate(self.parts)  # the coordinate of each row of the identity
        inf, none = np.inf, np.zeros
        self.low = np.concatenate(
            [program.low, -terms.l1[normed], np.full(above.size, -inf), none(below.size)]
        )
        self.high = np.concatenate(
            [program.high, terms.l1[normed], none(above.size), np.full(below.size, inf)]
        )
        self.b = np.concatenate(
            [program.b, none(normed.size), terms.lower[above], terms.upper[below]]
        )
        # Where a bound is missing, so are its distance and its multiplier: they stay 1 and 0.
        self.has_low, self.has_high = (
            (self.low > -inf).astype(float),
            (self.high < inf).astype(float),
        )
        self.count = float(self.has_low.sum() + self.has_high.sum())

    def dot(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate([self.program.A.times(x), x[self.columns]])

    def tdot(self, r: np.ndarray) -> np.ndarray:
        product = self.program.A.back(r[: self.m])
        if self.columns.size:
            product += np.bincount(self.columns, r[self.m :], minlength=product.size)
        return product

    def start(self, x: np.ndarray) -> Point:
        """r in the middle, or one unit from its only bound; z and v as the residuals want them, and not too small."""
        unit = float(np.median((self.high - self.low)[: self.m])) if self.m else 1.0
        low, high = (
            np.where(self.has_low, self.low, self.high - 2.0 * unit),
            np.where(self.has_high, self.high, self.low + 2.0 * unit),
        )
        residual = self.dot(x) - self.b
        push = float(np.abs(residual).mean()) + np.finfo(float).tiny
        z, v = (
            has * (np.maximum(side, 0.0) + push)
            for has, side in ((self.has_low, -residual), (self.has_high, residual))
        )
        self.width = high - low
        return Point(x, 0.5 * (low + high), 0.5 * self.width, 0.5 * self.width, z, v)

    def solve(self, x: np.ndarray, size: float, stop: Stop) -> Interior:
        l2, normal = self.program.terms.l2, Normal(self.program.A)
        now, least, reach = self.start(x), np.inf, TOO_FAR * (1.0 + np.abs(x).max(initial=0.0))
        best = before = last = now
        D = np.empty_like(now.r)
        for _ in range(STEPS):
            gradient, residual = (
                self.program.q + l2 * now.x + self.tdot(now.r),
                self.dot(now.x) - self.b,
            )
            product, missed = kernels.interior_weights(*now[2:], residual, self.width, D)
            error = product + missed + float(np.abs(gradient) @ (1.0 + np.abs(now.x)))
            if error <= least:
                least, best, last = error, now, before
            lost = not (error <= WORSE * least and np.abs(now.x).max(initial=0.0) < reach)
            if lost or product <= END_ERROR * size or stop():
                break
            if not normal.factorise(
                D[: self.m], l2 + np.bincount(self.columns, D[self.m :], minlength=x.size)
            ):
                break
            before, now = (
                now,
                self._step(now, System(normal, D, gradient, residual), product, bool(l2.any())),
            )
        return self._end(best, last, least)

    def _step(self, now: Point, system: System, product: float, curved: bool) -> Point:
        """Predict, correct, and go most of the way to the boundary."""
        nothing = np.zeros(now.s.size)
        _, dr, dz, dv, _, _, reached = self._direction(now, system, nothing, nothing)
        mu = product / self.count * min(1.0, reached / product) ** TO_CENTER
        aims = self.has_low * (mu - dr * dz), self.has_high * (mu + dr * dv)
        dx, dr, dz, dv, dual, primal, _ = self._direction(now, system, *aims)
        dual, primal = NEARLY * dual, NEARLY * primal
        if curved:  # then x is in both equations
            dual = primal = min(dual, primal)
        s, t = now.s + dual * (self.has_low * dr), now.t - dual * (self.has_high * dr)
        return Point(
            now.x + primal * dx, now.r + dual * dr, s, t, now.z + primal * dz, now.v + primal * dv
        )

    def _direction(
        self, now: Point, system: System, aim_s: np.ndarray, aim_t: np.ndarray
    ) -> tuple[Any, ...]:
        """Of x, r, z and v, such that s z and t v become what they are to be; how far it leads, and to which products."""
        normal, D, gradient, residual = system
        pull, dz, dv = np.empty((3, D.size))
        kernels.interior_pull(now.s, now.t, residual, D, aim_s, aim_t, pull)
        dx, y = normal.solve(self.tdot(pull) - gradient)
        dr = np.concatenate([y, D[self.m :] * dx[self.columns]]) - pull
        rows = *now[2:], self.has_low, self.has_high
        return dx, dr, dz, dv, *kernels.interior_direction(*rows, dr, aim_s, aim_t, dz, dv)

    def _end(self, now: Point, before: Point, error: float) -> Interior:
        """Of two factors whose product vanishes, the one of which the last step has left more is the one that stays."""
        s, t, z, v = (
            np.where(old > 0, new / old, 0.0) for new, old in zip(now[2:], before[2:], strict=True)
        )
        inside, m, first = (s > z) & (t > v), self.m, self.m
        held, place = np.zeros(now.x.size, bool), np.zeros(now.x.size)
        for index in self.parts:
            bent = inside[first : first + index.size]
            held[index[bent]], place[index[bent]] = True, self.b[first : first + index.size][bent]
            first += index.size
        return Interior(now.x, now.r[:m], inside[:m], (v > z)[:m], held, place, error)


class System(NamedTuple):
    """The equations of a step."""

    normal: Normal
    D: np.ndarray
    gradient: np.ndarray
    residual: np.ndarray


class Point(NamedTuple):
    """An iterate: s = r - low and t = high - r."""

    x: np.ndarray
    r: np.ndarray
    s: np.ndarray
    t: np.ndarray
    z: np.ndarray
    v: np.ndarray
