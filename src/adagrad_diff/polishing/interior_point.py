r"""The subproblem of piecewise linear losses by Mehrotra's primal-dual interior point method.

.. math:: \min_x\; \langle q, x\rangle + \sum_k \sigma_k(\langle a_k, x\rangle - b_k)
          + \sum_i l_{1,i} |x_i| + \tfrac12 l_{2,i} x_i^2, \qquad lower \le x \le upper, \qquad
          \sigma_k(t) = \max_{low_k \le r \le high_k} r t

Absolute values and bounds of coordinates are rows of the same kind, with the identity for A: r in
[-l1, l1], or in a half-line. So there is one multiplier r per row, and at a solution

.. math:: q + l_2 x + A^\top r = 0, \quad A x - b = v - z, \quad (r - low) z = (high - r) v = 0,
          \quad z, v \ge 0.

Newton's method on these equations, with mu in place of the zeros, takes one factorization of
A' D A plus a diagonal per step. It converges to a strictly complementary solution near the center of
the set of solutions, and so identifies the samples at their nonsmooth points (see `crossover`).

Slacks S = (r - low, high - r) and multipliers Z = (z, v) are arrays of two rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .linear_algebra import NormalEquations
from .quadratic_terms import Terms
from .solver import Stop

MAX_STEPS = 80
STEP_SHARE = 0.9995  # of the way to the boundary
CENTERING_POWER = 3  # of the predictor's progress that decides how much to center
FINAL_ERROR = 1e-11  # of the objective: the method ends
# The method ends without success if the error grows by the first factor, or x by the second.
MAX_ERROR_GROWTH, MAX_GROWTH = 1e4, 1e12
# The slack of a missing bound and its multiplier: their product and quotient count as zero.
NO_BOUND = 1e200, 1e-300
SIGNS = np.array([[1.0], [-1.0]])  # the derivative of S with respect to r


@dataclass
class Program:
    """The problem above."""

    A: np.ndarray  # (rows, coordinates), columns of about unit size
    b: np.ndarray
    low: np.ndarray
    high: np.ndarray
    q: np.ndarray
    terms: Terms

    def slack(self, x: np.ndarray, r: np.ndarray) -> float:
        """Return how far x and r are from a solution: the terms of the Fenchel inequality.

        A slope that no bound stops costs as much as a step to twice the distance of x plus one.
        """
        t, terms = self.A @ x - self.b, self.terms
        slope = -(self.q + terms.l2 * x + r @ self.A)
        far = np.abs(x) + 1.0
        upper = np.where(terms.upper < np.inf, terms.upper, far)
        lower = np.where(terms.lower > -np.inf, terms.lower, -far)
        conjugate = (
            np.maximum(slope - terms.l1, 0.0) * upper + np.minimum(slope + terms.l1, 0.0) * lower
        )
        rows = np.maximum(self.low * t, self.high * t) - r * t
        columns = terms.l1 * np.abs(x) - slope * x + conjugate
        return float(np.abs(rows).sum() + np.abs(columns).sum())


@dataclass
class InteriorSolution:
    """The last iterate, and what it identifies."""

    x: np.ndarray
    r: np.ndarray  # of the rows of A
    nonsmooth: np.ndarray  # rows of A with low < r < high
    above: np.ndarray  # rows of A with r = high, unless low < r < high
    held: np.ndarray  # coordinates that are zero or at a bound, at `place`
    place: np.ndarray


class Point(NamedTuple):
    """An iterate."""

    x: np.ndarray
    r: np.ndarray
    S: np.ndarray
    Z: np.ndarray


class InteriorPoint:
    """The method for one program. The rows are those of A, l1, the lower and the upper bounds."""

    def __init__(self, program: Program):
        self.program, terms = program, program.terms
        kinds = terms.l1 > 0, terms.lower > -np.inf, terms.upper < np.inf
        self.parts = tuple(map(np.flatnonzero, kinds))
        normed, below, above = self.parts
        self.columns = np.concatenate(self.parts)  # the coordinate of each row of the identity
        self.m = len(program.b)
        zeros, inf = np.zeros, np.inf
        low = (program.low, -terms.l1[normed], np.full(below.size, -inf), zeros(above.size))
        high = (program.high, terms.l1[normed], zeros(below.size), np.full(above.size, inf))
        place = (program.b, zeros(normed.size), terms.lower[below], terms.upper[above])
        self.low, self.high, self.b = map(np.concatenate, (low, high, place))
        self.missing = np.isinf([self.low, self.high])  # bounds of r
        self.count = self.missing.size - int(self.missing.sum())

    def solve(self, x: np.ndarray, size: float, stop: Stop) -> InteriorSolution:
        """Solve from any x as far as rounding permits. `size` is that of the objective."""
        with np.errstate(all="ignore"):  # an overflow ends the iteration
            return self._solve(x, size, stop)

    def _solve(self, x: np.ndarray, size: float, stop: Stop) -> InteriorSolution:
        l2, equations = self.program.terms.l2, NormalEquations(self.program.A)
        point, least = self._start(x), np.inf
        reach = MAX_GROWTH * (1.0 + np.abs(x).max(initial=0.0))
        best = previous = before_best = point
        for _ in range(MAX_STEPS):
            x, r, S, Z = point
            gradient, residual = self.program.q + l2 * x + self._tdot(r), self._dot(x) - self.b
            product = float(np.vdot(S, Z))
            missed = float(np.abs(residual - Z[1] + Z[0]) @ self.width)
            error = product + missed + float(np.abs(gradient) @ (1.0 + np.abs(x)))
            if error <= least:
                least, best, before_best = error, point, previous
            lost = not (error <= MAX_ERROR_GROWTH * least and np.abs(x).max(initial=0.0) < reach)
            if lost or product <= FINAL_ERROR * size or stop():
                break
            system = System(self, point, equations, gradient, residual)
            if not system.factorize(l2):
                break
            previous, point = point, self._step(point, system, product)
        return self._identify(best, before_best)

    def _dot(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate([self.program.A @ x, x[self.columns]])

    def _tdot(self, r: np.ndarray) -> np.ndarray:
        product: np.ndarray = r[: self.m] @ self.program.A
        if self.columns.size:
            product += np.bincount(self.columns, r[self.m :], minlength=product.size)
        return product

    def _start(self, x: np.ndarray) -> Point:
        """Return the center of the intervals of r, and Z that fits the residuals."""
        unit = float(np.median((self.high - self.low)[: self.m])) if self.m else 1.0
        low, high = self.low.copy(), self.high.copy()
        low[self.missing[0]] = high[self.missing[0]] - 2.0 * unit
        high[self.missing[1]] = low[self.missing[1]] + 2.0 * unit
        self.width = high - low
        residual = self._dot(x) - self.b
        push = float(np.abs(residual).mean()) + np.finfo(float).tiny
        Z = np.maximum(-SIGNS * residual, 0.0) + push
        S = np.stack([0.5 * self.width, 0.5 * self.width])
        S[self.missing], Z[self.missing] = NO_BOUND
        return Point(x, 0.5 * (low + high), S, Z)

    def _step(self, point: Point, system: System, product: float) -> Point:
        """Return the next iterate: predictor, corrector, most of the way to the boundary."""
        _, dr, dZ, dual, primal = system.direction(None)
        dS = SIGNS * dr
        reached = float(np.vdot(point.S + dual * dS, point.Z + primal * dZ))
        mu = product / self.count * min(1.0, reached / product) ** CENTERING_POWER
        aim = mu - dS * dZ
        aim[self.missing] = 0.0
        dx, dr, dZ, dual, primal = system.direction(aim)
        dual, primal = STEP_SHARE * dual, STEP_SHARE * primal
        if self.program.terms.l2.any():  # then x is in both equations
            dual = primal = min(dual, primal)
        x, r, S, Z = point
        return Point(x + primal * dx, r + dual * dr, S + dual * (SIGNS * dr), Z + primal * dZ)

    def _identify(self, point: Point, previous: Point) -> InteriorSolution:
        """Decide which of two factors vanishes: the one that the last step has reduced more."""
        inside = ((point.S / previous.S > point.Z / previous.Z) | self.missing).all(axis=0)
        above = (point.Z[1] / previous.Z[1] > point.Z[0] / previous.Z[0])[: self.m]
        held, place = np.zeros(point.x.size, bool), np.zeros(point.x.size)
        first = self.m
        for index in self.parts:
            rows = inside[first : first + index.size]
            held[index[rows]], place[index[rows]] = True, self.b[first : first + index.size][rows]
            first += index.size
        return InteriorSolution(point.x, point.r[: self.m], inside[: self.m], above, held, place)


class System:
    """The linear equations of a step."""

    def __init__(
        self,
        method: InteriorPoint,
        point: Point,
        equations: NormalEquations,
        gradient: np.ndarray,
        residual: np.ndarray,
    ):
        self.method, self.S, self.Z, self.equations = method, point.S, point.Z, equations
        self.gradient, self.residual = gradient, residual
        self.quotient = self.Z / self.S
        self.D = 1.0 / (self.quotient[0] + self.quotient[1])

    def factorize(self, l2: np.ndarray) -> bool:
        m, columns = self.method.m, self.method.columns
        E = l2 + np.bincount(columns, self.D[m:], minlength=l2.size)
        return self.equations.factorize(self.D[:m], E)

    def direction(
        self, aim: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        """Return steps of x, r and Z after which S Z is `aim` to first order, and their lengths."""
        method, D, m = self.method, self.D, self.method.m
        target, dZ = -self.residual, -self.Z
        if aim is not None:
            aim = aim / self.S
            target, dZ = target + (aim[1] - aim[0]), dZ + aim
        pull = D * target
        dx, y = self.equations.solve(method._tdot(pull) - self.gradient)
        dr = np.concatenate([y, D[m:] * dx[method.columns]]) - pull
        dS = SIGNS * dr
        dZ -= self.quotient * dS
        dZ[method.missing] = 0.0
        dual = 1.0 / float(np.max(-dS / self.S, initial=1.0))
        primal = 1.0 / float(np.max(-dZ / self.Z, initial=1.0))
        return dx, dr, dZ, dual, primal
