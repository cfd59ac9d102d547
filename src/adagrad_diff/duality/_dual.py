r"""The dual function of a linear model: lower bounds on F_star that hold in spite of rounding.

F(x) = sum_j w_j l(z_j, b_j) + psi(x) with z = A x (+ an intercept) and psi = phi + l2/2 ||x||^2, and for any u

.. math:: D(u) = -\sum_j w_j\, l^*(u_j, b_j) - \psi^*(-A^\top (w u)) \le F_\star,

where with an intercept sum_j w_j u_j must be zero. Of D(u) everything is subtracted that rounding may have added:

- A'(w u) is known up to e, and psi* is taken at its largest within that.
- sum_j w_j u_j is zero up to a small number. Some (1 - t) u + t q, q at an end of the domain of l*, is balanced exactly, and as
  l* is convex it costs at most t (l*(q) - l*(u)). Targets are centered, if only z - b matters: else b would multiply the error.
- Sums of N terms are off by N eps times the sum of their sizes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from ..linalg import Block, kernels
from ..losses import LinearModel
from ..penalties import Penalty
from ._free import cost_to_enter, independence
from ._noise import noise
from ._rounding import EPS, factor, largest

BISECTIONS = 60
SAMPLES_TOGETHER = 1 << 16  # whose conjugates are evaluated together


class Dual(ABC):
    """The dual function of a problem."""

    kinked = False  # whether current residuals are not enough: averages of them, and a refinement, get closer
    products = 0  # with A, that an evaluation takes beside those of the iteration
    lost = 0.0  # the part of the last dual point that scaling it into the dual set has cost
    reason = ""  # why the last bound was -inf
    scale = 0.0  # a typical size of F, see `LinearDual.scale`; 0 if none is known
    floor = (
        -np.inf
    )  # what is known without any effort: that the loss is not below its smallest value

    @abstractmethod
    def bound(self, x: np.ndarray, g: np.ndarray, r: np.ndarray | None) -> tuple[float, np.ndarray]:
        """(D, dual point) from an iterate, the gradient and the residuals there."""

    @abstractmethod
    def noise(self, x: np.ndarray, r: np.ndarray | None) -> float:
        """How far F may be from what an iteration computes for it near x, given the residuals there."""

    def residuals(self, oracle: Any, column: int | None) -> np.ndarray | None:
        """What the oracle has left of its last call, for one of the trajectories."""
        return None


class LinearDual(Dual):
    """Of a linear model: the dual point is u, one number per sample."""

    def __init__(self, loss: LinearModel, penalty: Penalty):
        self.loss, self.penalty = loss, penalty
        self.kinked, self.single = loss.piecewise_linear, loss.dtype != np.float64
        self.products = (
            3 if self.single else 0
        )  # one for A'(w u), and two to see how precise predictions are
        # In the dtype of the data: for float32 that halves the memory. Sums are taken in double precision.
        self.b, self.weight = self._targets(), loss.weight
        self.low, self.high = (np.broadcast_to(end, self.b.shape) for end in self._slopes())
        samples, features = loss.A.shape
        # Relative errors: of sums over samples one after the other (and of products that are made in steps), of those over
        # features, of those over samples in a tree.
        self.rounding, self.coarse = 2 * factor(samples), factor(features)
        self.chunked = factor(64 + samples // SAMPLES_TOGETHER)
        self.center = self._center() if loss.translates and loss.intercept else 0.0
        self.steepest = self.terms = (
            0.0  # of the last u: its size, and what was added up for sum_j w_j l*(u_j)
        )

    def _targets(self) -> np.ndarray:
        return self.loss.b

    def _slopes(self) -> tuple[Any, Any]:
        """The ends of the domain of l*, moved inside to numbers of the dtype of the data."""
        low, high = (
            np.asarray(end, dtype=np.float64) for end in self.loss.slopes(self.b, self.loss.theta)
        )
        left, right = low.astype(self.weight.dtype), high.astype(self.weight.dtype)
        inf = left.dtype.type(np.inf)
        return np.where(left < low, np.nextafter(left, inf), left), np.where(
            right > high, np.nextafter(right, -inf), right
        )

    def _center(self) -> float:
        """The target nearest to the mean: if all are equal, nothing is left of them."""
        return float(self.b[np.argmin(np.abs(self.b - self.b.dtype.type(self.mean(self.b))))])

    @cached_property
    def sizes(self) -> np.ndarray:
        """Of A'(w u) for |u| <= 1, coordinate by coordinate."""
        return self.loss.A.column_sizes(self.weight) * (1.0 + factor(len(self.weight)))

    @cached_property
    def metric(self) -> tuple[np.ndarray, np.ndarray]:
        """Scale and center of the columns in the coordinates of eta="auto", and the scale 1 of an intercept in the end.

        One scale for all, where the penalty's prox needs that.
        """
        known, features = self.loss.coordinates(), self.loss.A.shape[1]
        scale, center = np.ones(self.loss.shape[0]), np.zeros(features)
        if known.scale is not None and self.penalty.accepts == "diagonal":
            scale[:features] = known.scale
        if known.center is not None:
            center = known.center.astype(np.float64)
        return scale, center

    @cached_property
    def independence(self) -> float:
        """Of the columns of A, and that of the intercept: at most the smallest eigenvalue of their Gram matrix."""
        return independence(self.loss.A, self.weight, self.sizes, self.loss.intercept)

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
        kernels.residuals(self.loss.scalar)(
            z, self.b, self.weight, self.loss.theta, 0, len(z), value
        )
        return abs(float(value[0])) if np.isfinite(value[0]) else 0.0

    @cached_property
    def floor(self) -> float:  # type: ignore[override]
        """D at u = 0, which is always feasible: minus the smallest value of the loss, for most losses zero."""
        psi = self._entered(np.zeros(self.loss.A.shape[1] * self.b[:1].size), 0.0)[1]
        losses, terms = self._losses(np.zeros(self.b.shape))
        value = -losses - psi - self.rounding * (terms + abs(psi)) if terms or psi else 0.0
        return value if np.isfinite(value) else -np.inf

    # ------------------------------------------------------------ from residuals to a bound

    def residuals(self, oracle: Any, column: int | None) -> Any:
        return oracle.residuals(column)

    def bound(self, x: np.ndarray, g: np.ndarray, r: Any) -> tuple[float, np.ndarray]:
        loop = not (
            self.loss.intercept or self.loss.l2 or self.single
        )  # whether the iteration has the product already
        return self.value(self.multipliers(r), g.reshape(-1) if loop else None)

    def multipliers(self, r: np.ndarray) -> np.ndarray:
        """u = r / w of the residuals r = w l'(z): the slopes of the scalar losses."""
        weight = self.weight.reshape(-1, *(1,) * (r.ndim - 1))
        u: np.ndarray = np.divide(
            r, weight, out=np.zeros(r.shape, self.weight.dtype), where=weight > 0
        )
        if self.low.shape == u.shape:
            np.clip(u, self.low, self.high, out=u)
        return u

    def value(self, u: np.ndarray, v: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """D at u, made feasible: balanced for an intercept, and scaled into the domain of psi*. v is A'(w u), if known."""
        self.steepest, mixed = self.size(u), (0.0, 0.0, 0.0)
        if self.loss.intercept:
            u, v = self.balanced(u), None
            mixed = self._imbalance(u)
        if v is None or self.single:
            v = self.product(u)
        error, (part, far, cost) = self.rounding * self.size(u), mixed
        theta, psi = self._entered(v, error + part * (self.size(u) + far))
        more, self.lost = 0.0, 1.0 - theta
        if theta > 0:
            u = np.multiply(u, theta, dtype=np.float64)
        else:
            u, more = cost_to_enter(self, u, v, error)
            part = psi = 0.0
        losses, self.terms = self._losses(u)
        value = (
            -losses
            - part * max(cost - losses, 0.0)
            - more
            - psi
            - self.chunked * (self.terms + abs(psi))
        )
        if not np.isfinite(value):
            self.reason = (
                f"the conjugate of {type(self.loss).__name__} is infinite"
                if np.isfinite(more)
                else f"no multiple of A'u is in the domain of the conjugate of {self.penalty.name}: scaling does not reach it"
            )
            return self.floor, np.zeros(u.shape)
        return value, u

    def noise(self, x: np.ndarray, r: np.ndarray | None) -> float:
        return noise(self, x, r)

    def product(self, u: np.ndarray) -> np.ndarray:
        """A'(w u) in double precision, as one vector of penalised coordinates."""
        v: np.ndarray = self.loss.A.fold(_weighted_sum, along=(u, self.weight))
        return v.reshape(-1)

    def size(self, u: np.ndarray) -> float:
        """What the rounding of u and of its products is measured in."""
        return largest(u)

    def mean(self, values: np.ndarray) -> float:
        """The weighted mean over samples. (Not by BLAS, whose threads would stay awake and in the way of the iteration's.)"""
        return float(np.einsum("i,i->", self.weight, values, dtype=np.float64, casting="unsafe"))

    def _losses(self, u: np.ndarray) -> tuple[float, float]:
        """sum_j w_j l*(u_j), and the sum of the sizes of what is added up."""
        total = terms = 0.0
        for lo in range(0, len(u), SAMPLES_TOGETHER):
            part = slice(lo, lo + SAMPLES_TOGETHER)
            here, b, weight = (array[part].astype(np.float64) for array in (u, self.b, self.weight))
            b -= self.center
            conjugate = self.loss.conjugate(here, b, self.loss.theta)  # type: ignore[misc]
            sizes = (
                np.abs(here * b)
                if self.loss.translates
                else (1.0 + np.abs(here)) * (1.0 + np.abs(b))
            )
            sizes += np.abs(conjugate)
            total += float(np.sum(weight * conjugate, where=weight > 0))
            terms += float(np.sum(weight * sizes, where=weight > 0))
        return total, terms

    # ------------------------------------------------------------ the intercept

    def balanced(self, u: np.ndarray) -> np.ndarray:
        """u + c, clipped to the slopes there are, with c such that sum_j w_j u_j = 0: the root of a monotone function."""
        c, left, right, shifted = 0.0, -np.inf, np.inf, np.empty_like(u)
        accuracy = max(4 * EPS, float(np.finfo(u.dtype).eps)) * largest(u)
        for _ in range(BISECTIONS):
            np.clip(np.add(u, c, out=shifted), self.low, self.high, out=shifted)
            total = self.mean(shifted)
            if abs(total) <= accuracy:
                break
            left, right = (left, c) if total > 0 else (c, right)
            inside = shifted > self.low
            inside &= shifted < self.high
            slope = self.mean(inside)
            c = (
                c - total / slope if slope > 0 else np.nan
            )  # Newton: the function is piecewise linear
            if not left < c < right:
                c = (
                    0.5 * (left + right)
                    if np.isfinite(left + right)
                    else (2 * left + 1 if right == np.inf else 2 * right - 1)
                )
        else:
            return np.zeros_like(u)  # always balanced
        return shifted

    def _imbalance(self, u: np.ndarray) -> tuple[float, float, float]:
        """(t, max |q|, the largest sum_j w_j l*(q_j)): some (1 - t) u + t q is balanced exactly."""
        size = self.size(u)
        if size == 0.0:
            return 0.0, 0.0, 0.0
        room, far, cost = self._ends
        excess = abs(self.mean(u)) + self.rounding * size  # weights sum to one, nearly
        return excess / (excess + room), far, cost

    @cached_property
    def _ends(self) -> tuple[float, float, float]:
        """Of the points q at either end of the domain of l*: the least |sum_j w_j q_j|, the largest |q_j| and sum of l*.

        Where there is no end, or l* is infinite there, nearer points serve.
        """
        step = self.spread or 1.0
        rooms, fars, costs = [], [], [self._losses(np.zeros(len(self.b)))[0]]
        for end, other in ((self.low, -step), (self.high, step)):
            q = np.where(np.isfinite(end), end, other).astype(np.float64)
            while not np.isfinite(cost := self._losses(q)[0]) and q.any():
                q *= 0.5
            rooms.append(abs(self.mean(q)) * (1.0 - self.rounding))
            fars.append(largest(q))
            costs.append(cost)
        return min(rooms), max(fars), max(costs)

    # ------------------------------------------------------------ the penalty

    def _entered(self, v: np.ndarray, error: float) -> tuple[float, float]:
        """The same as `entered`, v being known up to `error` times `sizes`."""
        if {"norm", "seminorm"} & self.penalty.properties and not self.loss.l2:
            return self._inside_norm(v, error * self._polar if error else 0.0)
        return self.entered(v, error * self.sizes)

    def entered(self, v: np.ndarray, e: np.ndarray) -> tuple[float, float]:
        """The largest theta <= 1 for which psi* is known to be finite at -theta v, and at least its value there.

        v is known up to e, coordinate by coordinate.
        """
        if self.loss.l2:
            return 1.0, self._envelope(v, e)
        if {"norm", "seminorm"} & self.penalty.properties:
            return self._inside_norm(v, float(self.penalty.polar(e)))
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

    def _inside_norm(self, v: np.ndarray, polar: float) -> tuple[float, float]:
        """Of a norm: v is known up to something that has at most this polar."""
        polar += float(self.penalty.polar(v)) * (1.0 + self.penalty.polar_accuracy(v.size))
        return (1.0 if polar <= 1 else (1.0 - 4 * EPS) / polar), 0.0

    @cached_property
    def _polar(self) -> float:
        return float(self.penalty.polar(self.sizes))

    def _envelope(self, v: np.ndarray, e: np.ndarray) -> float:
        """At least psi*(-v) for l2 > 0: the supremum is attained at p = prox(-v / l2) with steps 1 / l2, its gradient."""
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


def _weighted_sum(block: Block, u: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """A'(w u) of one block, in double precision."""
    r = u * weight.reshape(-1, *(1,) * (u.ndim - 1)).astype(np.float64)
    block.tdot(r, v := np.empty((block.shape[1], *u.shape[1:])))
    return v
