r"""The dual function of a linear model, with an a-priori bound on rounding errors.

F(x) = sum_j w_j l(z_j, b_j) + psi(x) with z = A x (+ an intercept) and psi = phi + l2/2 ||x||^2, and for any u

.. math:: D(u) = -\sum_j w_j\, l^*(u_j, b_j) - \psi^*(-A^\top (w u)) \le F_\star,

where with an intercept sum_j w_j u_j must be zero. Everything that rounding may have added to D(u) is subtracted:

- A'(w u) is known up to e, and psi* is bounded from above within that distance.
- sum_j w_j u_j is zero up to a small number. Some (1 - t) u + t q, q at an end of the domain of l*, is balanced exactly. As
  l* is convex, it costs at most t (l*(q) - l*(u)). Targets are centered if only z - b matters, else b would multiply the error.
- Sums of N terms are off by N eps times the sum of their sizes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..linalg import Block
from ..linalg.block import residuals
from ..losses import LinearModel
from ..penalties import Penalty
from ._products import EPS, ExtendedMatrix, exact_sum, factor, largest, two_product

BISECTIONS = 60  # of a root finder: more than a double has bits
CHUNK_SAMPLES = 1 << 16  # samples whose conjugates are evaluated together
CONSTANT_SPREAD = 1e-13  # mean deviation of a column, relative to its mean, that is only rounding


class Bound(NamedTuple):
    """A lower bound on the optimum and the dual point that it belongs to."""

    value: float
    point: np.ndarray


class Products(NamedTuple):
    """A'(w u) for columns u, and its errors.

    With an intercept, columns of A are centered, and sum_j w_j u_j is in a last row.
    """

    v: np.ndarray
    error: np.ndarray


class Dual(ABC):
    """The dual function of a problem."""

    nonsmooth = False  # whether residuals at x are not enough: their averages are closer
    lost = 0.0  # the share of the last dual point that scaling it into the dual set has cost
    reason = ""  # why the last bound was -inf
    scale = 0.0  # a typical size of F, see `LinearDual.scale`; 0 if none is known
    floor = -np.inf  # what is known without effort: the loss is not below its smallest value

    @abstractmethod
    def bound(self, x: np.ndarray, g: np.ndarray, r: np.ndarray | None) -> Bound:
        """Return a lower bound from an iterate, the gradient and the residuals there."""

    def residuals(self, oracle: Any, column: int | None) -> np.ndarray | None:
        """Return the residuals of one trajectory at the last point of the oracle."""
        return None


class LinearDual(Dual):
    """The dual function of a linear model: the dual point is u, one number per sample."""

    normalization = 0.0  # relative error of the constraints that couple the entries of a row of u

    def __init__(self, loss: LinearModel, penalty: Penalty):
        self.loss, self.penalty = loss, penalty
        self.nonsmooth, self.single = loss.piecewise_linear, loss.dtype != np.float64
        # In the dtype of the data: for float32 that halves the memory. Sums are in double precision.
        self.b, self.weight = self._targets(), loss.weight
        self.low, self.high = (np.broadcast_to(end, self.b.shape) for end in self._slopes())
        samples, features = loss.A.shape
        # Relative errors of sums over samples one after the other (and of products that are made in
        # steps), of sums over features, and of sums over samples in a tree.
        self.rounding, self.coarse = 2 * factor(samples), factor(features)
        self.chunked = factor(64 + samples // CHUNK_SAMPLES)
        self.center = self._center() if loss.translates and loss.intercept else 0.0

    def _targets(self) -> np.ndarray:
        return self.loss.b

    def _slopes(self) -> tuple[Any, Any]:
        """Return the ends of the domain of l*, moved inside to numbers of the dtype of the data."""
        low, high = (
            np.asarray(end, dtype=np.float64) for end in self.loss.slopes(self.b, self.loss.theta)
        )
        left, right = low.astype(self.weight.dtype), high.astype(self.weight.dtype)
        inf = left.dtype.type(np.inf)
        return np.where(left < low, np.nextafter(left, inf), left), np.where(
            right > high, np.nextafter(right, -inf), right
        )

    def _center(self) -> float:
        """Return the target nearest to the mean: if all are equal, nothing is left of them."""
        return float(self.b[np.argmin(np.abs(self.b - self.b.dtype.type(self.mean(self.b))))])

    @cached_property
    def matrix(self) -> ExtendedMatrix:
        """A for products in extended precision."""
        return ExtendedMatrix(self.loss.A)

    @cached_property
    def sizes(self) -> np.ndarray:
        """A'(w u) for |A| and |u| = 1: the rounding of products is relative to it."""
        return self.loss.A.column_sizes(self.weight) * (1.0 + factor(len(self.weight)))

    @cached_property
    def _centers(self) -> tuple[np.ndarray, np.ndarray]:
        """What columns are centered by, and at least sum_j w_j |a_ji| of the centered columns."""
        A, weight = self.loss.A, self.weight
        if not self.loss.intercept or A.opaque:
            return np.zeros(A.shape[1]), np.empty(0)
        means: np.ndarray = A.fold(_weighted_sum, along=(np.ones(len(weight)), weight))
        spreads: np.ndarray = A.fold(_deviations, means, along=(weight,))
        # Constant columns are not centered, because nothing but rounding would be left of them.
        constant = spreads <= CONSTANT_SPREAD * np.abs(means)
        return np.where(constant, 0.0, means), spreads + np.where(constant, np.abs(means), 0.0)

    @property
    def means(self) -> np.ndarray:
        """What columns are centered by: with an intercept their means, else zero."""
        return self._centers[0]

    @cached_property
    def spreads(self) -> np.ndarray:
        """The same as `sizes` for centered columns."""
        if not self.means.any():
            return self.sizes
        sizes = self._centers[1] * (1.0 + factor(len(self.weight)))
        return np.repeat(sizes, self.b[:1].size)

    @cached_property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The interval of each entry of `Products.v` in which the conjugate may be finite."""
        features, columns = self.loss.A.shape[1], self.b[:1].size
        low = np.full((features + self.loss.intercept) * columns, -np.inf)
        high, size = -low, features * columns
        terms = None if self.loss.l2 else self.penalty.quadratic_terms(size)
        if terms is not None:
            flat = terms.l2 == 0
            if terms.labels is not None and terms.strength is not None:
                flat &= terms.strength[terms.labels] == 0
            low[:size] = np.where(flat & (terms.upper == np.inf), -terms.l1, -np.inf)
            high[:size] = np.where(flat & (terms.lower == -np.inf), terms.l1, np.inf)
        low[size:] = high[size:] = 0.0
        return low.reshape(-1, columns), high.reshape(-1, columns)

    @cached_property
    def metric(self) -> tuple[np.ndarray, np.ndarray]:
        """Scale and center of the columns in the coordinates of eta="auto"; the intercept has scale 1.

        There is one scale for all coordinates where the penalty's prox needs that.
        """
        known, features = self.loss.coordinates(), self.loss.A.shape[1]
        scale, center = np.ones(self.loss.shape[0]), np.zeros(features)
        if known.scale is not None and self.penalty.accepts == "diagonal":
            scale[:features] = known.scale
        if known.center is not None:
            center = known.center.astype(np.float64)
        return scale, center

    @cached_property
    def typical(self) -> float:
        """The mean size of the targets."""
        return self.mean(np.abs(self.b))

    @cached_property
    def spread(self) -> float:
        """The mean distance of the targets from their center."""
        return self.mean(np.abs(self.b - self.center))

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        """The mean loss of predictions that are all zero, or the targets' center unless they are all equal."""
        center = self.center if np.ptp(self.b) else 0.0
        z, value = np.full(len(self.b), center, self.b.dtype), np.zeros(1)
        residuals(self.loss.scalar)(z, self.b, self.weight, self.loss.theta, 0, len(z), value)
        return abs(float(value[0])) if np.isfinite(value[0]) else 0.0

    @cached_property
    def floor(self) -> float:  # type: ignore[override]
        """D at u = 0, which is always feasible: minus the smallest value of the loss, mostly zero."""
        psi = self.scaling(nothing := np.zeros(self.sizes.size), nothing)[1]
        losses, terms = self._losses(np.zeros(self.b.shape))
        value = -losses - psi - self.rounding * (terms + abs(psi)) if terms or psi else 0.0
        return value if np.isfinite(value) else -np.inf

    # ------------------------------------------------------------ from residuals to a bound

    def residuals(self, oracle: Any, column: int | None) -> Any:
        return oracle.residuals(column)

    def bound(self, x: np.ndarray, g: np.ndarray, r: Any) -> Bound:
        # Whether the iteration has computed the product already.
        known = not (self.loss.intercept or self.loss.l2 or self.single)
        return self.value(self.multipliers(r), g.reshape(-1) if known else None)

    def multipliers(self, r: np.ndarray) -> np.ndarray:
        """Return u = r / w for residuals r = w l'(z): the slopes of the scalar losses."""
        weight = self.weight.reshape(-1, *(1,) * (r.ndim - 1))
        u: np.ndarray = np.divide(
            r, weight, out=np.zeros(r.shape, self.weight.dtype), where=weight > 0
        )
        return self.clipped(u)

    def clipped(self, u: np.ndarray) -> np.ndarray:
        """Return u in the domain of the conjugates."""
        clipped: np.ndarray = np.clip(u, self.low, self.high)
        return clipped

    def value(self, u: np.ndarray, v: np.ndarray | None = None) -> Bound:
        """Return a lower bound on D at u, balanced and scaled into the dual set; v is A'(w u), if known."""
        if self.loss.intercept:
            u, v = self.balanced(u), None
        if v is None or self.single:
            v = self.product(u)
        size = self.size(u)
        total = self.total(u) if self.loss.intercept else None
        return self.evaluate(u, v, self.rounding * size * self.sizes, total, self.rounding * size)

    def evaluate(
        self,
        u: np.ndarray,
        v: np.ndarray,
        error: np.ndarray,
        total: Any = None,
        error_total: Any = 0.0,
        cost: float | None = None,
        scaled: tuple[float, float] | None = None,
    ) -> Bound:
        """Return a lower bound on D near u.

        v is A'(w u) up to `error`, and `total` is sum_j w_j u_j up to `error_total`, or None if it is
        zero. `cost` is what conjugates increase by from u to the point that v belongs to, and None for
        products in double precision. `scaled` is the result of `scaling`, if known.
        """
        extended, cost = cost is not None, cost or 0.0
        part = far = cost_far = 0.0
        if total is not None:
            part, far, cost_far = self._imbalance(u, total, error_total)
            sizes = self.spreads if extended else self.sizes
            error = error + part * (self.size(u) + far) * sizes
        theta, psi = scaled or self.scaling(v, error)
        self.lost = 1.0 - theta
        u = np.multiply(u, theta, dtype=np.float64)
        losses, terms = self._losses(u, extended)
        cost += part * max(cost_far - losses, 0.0)
        rounding = factor(8) if extended else self.chunked
        value = -losses - cost - psi - rounding * (terms + abs(psi) + cost)
        if not (theta > 0 and np.isfinite(value)):
            self.reason = (
                f"the conjugate of {type(self.loss).__name__} is infinite"
                if theta > 0
                else f"no multiple of A'u is in the domain of the conjugate of {self.penalty.name}: scaling does not reach it"
            )
            return Bound(self.floor, np.zeros(u.shape))
        return Bound(float(value), u)

    def product(self, u: np.ndarray) -> np.ndarray:
        """Return A'(w u) in double precision, as one vector of penalized coordinates."""
        v: np.ndarray = self.loss.A.fold(_weighted_sum, along=(u, self.weight))
        return v.reshape(-1)

    def products(self, u: np.ndarray) -> Products:
        """Return A'(w u) and the sums for an intercept in extended precision, for u of shape (N, C)."""
        weight = self.weight.astype(np.float64)[:, None]
        if np.ptp(weight) == 0:  # equal weights multiply the result: no product is rounded
            r, rest, unit = u, np.zeros_like(u), float(weight[0, 0])
        else:
            (r, rest), unit = two_product(weight, u), 1.0
        high, low, error = self.matrix.tdot(r, rest)
        v, sizes = unit * (high + low), self.spreads.reshape(len(high), -1)
        error = unit * error + 2 * EPS * np.abs(v) + self.normalization * sizes
        if self.loss.intercept:
            last = np.array([unit * exact_sum([*r[:, c], *rest[:, c]]) for c in range(u.shape[1])])
            shift = self.means[:, None] * last
            v = np.vstack([v - shift, last])
            error += 6 * EPS * np.abs(shift) + 2 * EPS * np.abs(v[:-1])
            error = np.vstack([error, 2 * EPS * np.abs(last) + self.normalization])
        return Products(v, error)

    def size(self, u: np.ndarray) -> float:
        """Return the size of what is rounded in u."""
        return largest(u)

    def total(self, u: np.ndarray) -> Any:
        """Return sum_j w_j u_j. (BLAS would keep its threads awake, in the way of the iteration's.)"""
        return np.einsum("i,i...->...", self.weight, u, dtype=np.float64, casting="unsafe")

    def mean(self, values: np.ndarray) -> float:
        """Return the weighted mean."""
        return float(self.total(values))

    def _losses(self, u: np.ndarray, extended: bool = False) -> tuple[float, float]:
        """Return sum_j w_j l*(u_j), and the sum of the sizes of its terms."""
        parts, terms = [], 0.0
        for lo in range(0, len(u), CHUNK_SAMPLES):
            part = slice(lo, lo + CHUNK_SAMPLES)
            here, b, weight = (array[part].astype(np.float64) for array in (u, self.b, self.weight))
            b -= self.center
            conjugate = self.loss.conjugate(here, b, self.loss.theta)  # type: ignore[misc]
            sizes = (
                np.abs(here * b)
                if self.loss.translates
                else (1.0 + np.abs(here)) * (1.0 + np.abs(b))
            )
            sizes += np.abs(conjugate)
            values = (weight * conjugate)[weight > 0]
            parts.append(exact_sum(values) if extended else float(np.sum(values)))
            terms += float(np.sum(weight * sizes, where=weight > 0))
        return (exact_sum if extended else sum)(parts), terms

    # ------------------------------------------------------------ the geometry around a dual point

    def slack(self, u: np.ndarray) -> np.ndarray:
        """Return the distance of each sample from the ends of its domain, at most a typical slope."""
        u = u[:, 0]
        return np.asarray(np.minimum(np.minimum(u - self.low, self.high - u), largest(u) or 1.0))

    def steepness(self, u: np.ndarray, samples: np.ndarray, radius: np.ndarray) -> np.ndarray:
        """Return bounds of |l*(u + d) - l*(u)| / |d| for |d| <= radius, of shape (samples, C)."""
        u, b = u[samples, 0], self.b[samples].astype(np.float64) - self.center
        here, *there = (
            self.loss.conjugate(u + side * radius, b, self.loss.theta)  # type: ignore[misc]
            for side in (0.0, -1.0, 1.0)
        )
        there = np.maximum(*there)
        rise = np.maximum(there - here, 0.0) + 1e-9 * (np.abs(here) + np.abs(there))
        return np.asarray(rise / radius)[:, None]

    def inward(self, u: np.ndarray, share: float) -> np.ndarray:
        """Return u moved towards a point inside the domain, so that all samples have some slack."""
        inside = np.where((self.low < 0) & (self.high > 0), 0.0, 0.5 * (self.low + self.high))
        moved: np.ndarray = u + share * (inside[:, None] - u)
        return moved

    # ------------------------------------------------------------ the intercept

    def balanced(self, u: np.ndarray) -> np.ndarray:
        """Return u + c, clipped to the slopes, with sum_j w_j u_j = 0: c is the root of a monotone function."""
        c, left, right, shifted = 0.0, -np.inf, np.inf, np.empty_like(u)
        accuracy = max(4 * EPS, float(np.finfo(u.dtype).eps)) * largest(u)
        for _ in range(BISECTIONS):
            np.clip(np.add(u, c, out=shifted), self.low, self.high, out=shifted)
            total = self.mean(shifted)
            if abs(total) <= accuracy:
                break
            left, right = (left, c) if total > 0 else (c, right)
            slope = self.mean((shifted > self.low) & (shifted < self.high))
            # Newton's method, because the function is piecewise linear.
            c = c - total / slope if slope > 0 else np.nan
            if not left < c < right:
                c = (
                    0.5 * (left + right)
                    if np.isfinite(left + right)
                    else (2 * left + 1 if right == np.inf else 2 * right - 1)
                )
        else:
            return np.zeros_like(u)  # always balanced
        return shifted

    def _imbalance(self, u: np.ndarray, total: Any, error: Any) -> tuple[float, float, float]:
        """Return t, max |q| and the largest sum_j w_j l*(q_j): some (1 - t) u + t q is balanced exactly."""
        excess = float(np.max(np.abs(total) + error))  # weights sum to one, nearly
        slack, far, cost = self._ends
        return (excess / (excess + slack), far, cost) if excess else (0.0, 0.0, 0.0)

    @cached_property
    def _ends(self) -> tuple[float, float, float]:
        """For points q at either end of the domain: the least |sum_j w_j q_j|, max |q_j| and sum_j w_j l*(q_j).

        Where there is no end, or l* is infinite there, nearer points serve.
        """
        step = self.spread or 1.0
        slacks, fars, costs = [], [], [self._losses(np.zeros(len(self.b)))[0]]
        for end, other in ((self.low, -step), (self.high, step)):
            q = np.where(np.isfinite(end), end, other).astype(np.float64)
            while not np.isfinite(cost := self._losses(q)[0]) and q.any():
                q *= 0.5
            slacks.append(abs(self.mean(q)) * (1.0 - self.rounding))
            fars.append(largest(q))
            costs.append(cost)
        return min(slacks), max(fars), max(costs)

    # ------------------------------------------------------------ the penalty

    def scaling(self, v: np.ndarray, e: np.ndarray) -> tuple[float, float]:
        """Return the largest known theta <= 1 with psi* finite at -theta v, and at least its value there.

        v is known up to e, coordinate by coordinate.
        """
        if self.loss.l2:
            return 1.0, self._envelope(v, e)
        if {"norm", "seminorm"} & self.penalty.properties:
            polar = float(self.penalty.polar(v)) * (1.0 + self.penalty.polar_accuracy(v.size))
            polar += float(self.penalty.polar(e))
            return (1.0 if polar <= 1 else (1.0 - 4 * EPS) / polar), 0.0
        conjugate = self.penalty.conjugate_bound(-v, e)
        if np.isfinite(conjugate):
            return 1.0, conjugate
        if "set" in self.penalty.properties:  # then scaling changes nothing
            return 0.0, 0.0
        inside, outside, value = 0.0, 1.0, np.nan
        for _ in range(BISECTIONS):
            theta = 0.5 * (inside + outside)
            conjugate = self.penalty.conjugate_bound(-theta * v, theta * e)
            if np.isfinite(conjugate):
                inside, value = theta, conjugate
            else:
                outside = theta
        return inside, value

    def _envelope(self, v: np.ndarray, e: np.ndarray) -> float:
        """Return at least psi*(-v) for l2 > 0: the supremum is attained at prox(-v / l2) with steps 1 / l2."""
        l2 = self.loss.l2
        if not np.isfinite(1.0 / np.float64(l2)):
            return np.inf
        p = np.asarray(self.penalty.prox(-v / l2, 1.0 / l2))
        phi, square, size = float(self.penalty.value(p)), 0.5 * l2 * float(p @ p), np.abs(p)
        terms = float(size @ np.abs(v)) + square + abs(phi)
        return (
            -float(p @ v)
            - square
            - phi
            + float(e @ size)
            + float(e @ e) / (2 * l2)
            + (self.penalty.accuracy + factor(v.size)) * terms
        )


def _deviations(block: Block, weight: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return at least sum_j weight_j |a_ji - means_i| of one block."""
    if hasattr(block, "parts"):
        return np.asarray(block.column_sizes(weight) + float(weight.sum()) * np.abs(means))
    total = np.zeros(means.size)
    for lo, hi in block.ranges(0, block.shape[0]):
        total += weight[lo:hi] @ np.abs(block.cut(lo, hi).to_dense() - means)
    return total


def _weighted_sum(block: Block, u: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return A'(w u) of one block in double precision."""
    r = u * weight.reshape(-1, *(1,) * (u.ndim - 1)).astype(np.float64)
    block.tdot(r, v := np.empty((block.shape[1], *u.shape[1:])))
    return v
