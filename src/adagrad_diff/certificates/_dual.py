r"""The dual function: lower bounds on F_star.

For a linear model, F(x) = sum_j w_j l(z_j, b_j) + psi(x) with z = A x (+ an intercept) and psi = phi + l2/2 ||x||^2, and for
any u

.. math:: D(u) = -\sum_j w_j\, l^*(u_j, b_j) - \psi^*(-A^\top (w u)) \le F_\star,

where with an intercept sum_j w_j u_j must be zero. For f(x) = x'Qx/2 - c'x and g = Q x - c, D(g) = -x'Qx/2 - phi*(-g).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..losses import LinearModel, Loss, Multinomial, Quadratic
from ..penalties import Penalty

ROUNDING = 1e-15
BISECTIONS = 60
CHUNK = 1 << 16  # samples whose conjugates are evaluated together


class Dual(ABC):
    """The dual function of a problem."""

    kinked = False  # whether current residuals are not enough: averages of them, and a refinement, get closer
    reason = ""  # why the last bound was -inf

    @abstractmethod
    def bound(self, x: np.ndarray, g: np.ndarray, r: np.ndarray | None) -> tuple[float, np.ndarray]:
        """(D, dual point) from an iterate, the gradient and the residuals there."""

    def residuals(self, oracle: Any, column: int | None) -> np.ndarray | None:
        """What the oracle has left of its last call, for one of the trajectories."""
        return None


class LinearDual(Dual):
    """Of a linear model: the dual point is u, one number per sample."""

    def __init__(self, loss: LinearModel, penalty: Penalty):
        self.loss, self.penalty = loss, penalty
        self.kinked = loss.jump is not None
        # In the dtype of the data: for float32 that halves the memory. Sums are taken in double precision.
        self.b, self.weight = self._targets(), loss.weight
        low, high = loss.slopes(self.b, loss.theta)
        self.low, self.high = np.broadcast_to(low, self.b.shape), np.broadcast_to(high, self.b.shape)

    def _targets(self) -> np.ndarray:
        return self.loss.b

    # ------------------------------------------------------------ from residuals to a feasible point

    def residuals(self, oracle, column):
        return oracle.r if column is None else oracle.r[:, column]

    def bound(self, x, g, r):
        v = None
        if not self.loss.intercept:  # the loop has the product already
            v = g.reshape(-1).astype(np.float64)
            if self.loss.l2:
                v -= self.loss.l2 * x.reshape(-1)
        return self.value(self.multipliers(r), v)

    def multipliers(self, r: np.ndarray) -> np.ndarray:
        """u = r / w of the residuals r = w l'(z): the slopes of the scalar losses."""
        weight = self.weight.reshape(-1, *(1,) * (r.ndim - 1))
        u = np.divide(r, weight, out=np.zeros(r.shape, self.weight.dtype), where=weight > 0)
        return np.clip(u, self.low, self.high, out=u) if self.low.shape == u.shape else u

    def value(self, u: np.ndarray, v: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """D at u, made feasible: balanced for an intercept, and scaled into the domain of psi*. v is A'(w u), if known."""
        if self.loss.intercept:
            u, v = self.balanced(u), None
        if v is None:
            v = self.product(u)
        theta, psi = self._scaled(v)
        if not theta > 0:
            self.reason = (
                f"no multiple of A'u is in the domain of the conjugate of {self.penalty.name}: scaling does not reach it"
            )
            return -np.inf, u
        if theta < 1:  # in place, if the balanced u is nobody else's
            u = np.multiply(u, theta, out=u if self.loss.intercept else None, dtype=u.dtype)
        value = -self._losses(u) - psi
        if not np.isfinite(value):
            self.reason = f"the conjugate of {type(self.loss).__name__} is infinite"
            return -np.inf, u
        return value, u

    def product(self, u: np.ndarray) -> np.ndarray:
        """A'(w u), as one vector of penalised coordinates."""
        A, v = self.loss.A, np.zeros((self.loss.A.shape[1], *u.shape[1:]))
        for lo, hi in A.row_blocks(0, len(u)):
            r = u[lo:hi] * self.weight[lo:hi].reshape(-1, *(1,) * (u.ndim - 1)).astype(np.float64)
            A.tdot(r, lo, hi, v, add=True)
        return v.reshape(-1)

    def mean(self, values: np.ndarray) -> float:
        """The weighted mean over samples. (Not by BLAS, whose threads would stay awake and in the way of the iteration's.)"""
        return float(np.einsum("i,i->", self.weight, values, dtype=np.float64, casting="unsafe"))

    def _losses(self, u: np.ndarray) -> float:
        """sum_j w_j l*(u_j)"""
        total = 0.0
        for lo in range(0, len(u), CHUNK):
            part = slice(lo, lo + CHUNK)
            weight = self.weight[part].astype(np.float64)
            conjugate = self.loss.conjugate(u[part].astype(np.float64), self.b[part], self.loss.theta)  # type: ignore[misc]
            total += float(np.sum(weight * conjugate, where=weight > 0))
        return total

    def balanced(self, u: np.ndarray) -> np.ndarray:
        """u + c, clipped to the slopes there are, with c such that sum_j w_j u_j = 0: the root of a monotone function."""
        c, left, right, shifted = 0.0, -np.inf, np.inf, np.empty_like(u)
        accuracy = max(ROUNDING, float(np.finfo(u.dtype).eps)) * max(float(u.max()), -float(u.min()))
        for _ in range(BISECTIONS):
            np.clip(np.add(u, c, out=shifted), self.low, self.high, out=shifted)
            total = self.mean(shifted)
            if abs(total) <= accuracy:
                break
            left, right = (left, c) if total > 0 else (c, right)
            inside = shifted > self.low
            inside &= shifted < self.high
            slope = self.mean(inside)
            c = c - total / slope if slope > 0 else np.nan  # Newton: the function is piecewise linear
            if not left < c < right:
                c = 0.5 * (left + right) if np.isfinite(left + right) else (2 * left + 1 if right == np.inf else 2 * right - 1)
        else:
            return np.zeros_like(u)  # always balanced
        return shifted

    # ------------------------------------------------------------ the penalty

    def _scaled(self, v: np.ndarray) -> tuple[float, float]:
        """The largest theta <= 1 with psi*(-theta v) finite, and that value."""
        if self.loss.l2:
            return 1.0, self._envelope(v)
        if {"norm", "seminorm"} & self.penalty.properties:
            polar = float(self.penalty.polar(v))
            return (1.0 if polar <= 1 else (1 - ROUNDING) / polar), 0.0
        conjugate = float(self.penalty.conjugate(-v))
        if np.isfinite(conjugate):
            return 1.0, conjugate
        inside, outside, value = 0.0, 1.0, np.nan
        for _ in range(BISECTIONS):
            theta = 0.5 * (inside + outside)
            conjugate = float(self.penalty.conjugate(-theta * v))
            if np.isfinite(conjugate):
                inside, value = theta, conjugate
            else:
                outside = theta
        return inside, value

    def _envelope(self, v: np.ndarray) -> float:
        """psi*(-v) for l2 > 0: the supremum is attained at p = prox(-v / l2) with steps 1 / l2."""
        l2 = self.loss.l2
        p = np.asarray(self.penalty.prox(-v / l2, 1.0 / l2))
        return float(-(p @ v) - 0.5 * l2 * (p @ p) - self.penalty.value(p))


class MultinomialDual(LinearDual):
    """Of the multinomial loss: u is one row per sample, and u + (1 at the sample's class) are probabilities p."""

    def _targets(self):
        indicators = np.zeros((len(self.loss.b), self.loss.classes))
        indicators[np.arange(len(indicators)), self.loss.b] = 1.0
        return indicators

    def residuals(self, oracle, column):
        return oracle.r.reshape(*self.b.shape, -1)[:, :, column or 0]

    def multipliers(self, r):
        p = super().multipliers(r) + self.b
        p = np.maximum(p, 0.0)
        return p / p.sum(axis=1, keepdims=True) - self.b

    def _losses(self, u):
        """sum_j w_j sum_c p log p"""
        from scipy.special import entr

        return -self.mean(entr(np.maximum(u + self.b, 0.0)).sum(axis=1))

    def balanced(self, u):
        """p mixed with one distribution for all samples, as little of it as gives every class its own share of samples."""
        p = u + self.b
        has, wanted = self.weight @ p, self.weight @ self.b
        part = float(np.max(1.0 - np.divide(wanted, has, out=np.ones_like(has), where=has > 0), initial=0.0))
        if part == 0.0:
            return u.copy()
        other = np.maximum(wanted - (1.0 - part) * has, 0.0) / part
        return (1.0 - part) * p + part * (other / other.sum()) - self.b


class QuadraticDual(Dual):
    """Of a quadratic function: the dual point is its gradient g. For the dual of an SVM, D is the classifier's objective."""

    def __init__(self, loss: Quadratic, penalty: Penalty):
        self.loss, self.penalty = loss, penalty

    def bound(self, x, g, r):
        x, g = x.astype(np.float64), g.astype(np.float64)
        conjugate = float(self.penalty.conjugate(-g))
        if not np.isfinite(conjugate):
            self.reason = f"the conjugate of {self.penalty.name} is infinite at the gradient"
            return -np.inf, g
        return -0.5 * float(x @ (g + self.loss.c)) - conjugate, g


def dual_of(loss: Loss, penalty: Penalty) -> Dual | str:
    """The dual function, or a phrase that says why there is none."""
    if isinstance(loss, Quadratic):
        kind: type[Any] = QuadraticDual
    elif isinstance(loss, Multinomial):
        kind = MultinomialDual
    elif isinstance(loss, LinearModel) and loss.conjugate is not None:
        kind = LinearDual
    else:
        return f"the conjugate of {type(loss).__name__} is not known"
    if not getattr(loss, "l2", 0.0):
        try:
            assert loss.shape is not None
            size = int(np.prod(loss.shape)) * (loss.shape[0] - loss.intercept) // loss.shape[0]
            penalty.conjugate(np.zeros(size))
        except ValueError as error:
            return str(error).rstrip(".")
    return kind(loss, penalty)
