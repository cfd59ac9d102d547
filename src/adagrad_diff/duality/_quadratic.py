"""The dual function of a quadratic function f(x) = x'Qx/2 - c'x: with g = Q x - c, D(g) = -x'Qx/2 - phi*(-g)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..losses import Quadratic
from ..penalties import Penalty
from ._correction import outside
from ._linear import Bound, Dual
from ._objective import Value
from ._products import EPS, factor, penalty_value

MAX_EIGENVALUE_COLUMNS = 500  # up to which the smallest eigenvalue is computed


class QuadraticDual(Dual):
    """The dual point is the gradient g. For the dual of an SVM, D is the classifier's objective.

    That Q is positive semidefinite is taken on trust.
    """

    def __init__(self, loss: Quadratic, penalty: Penalty):
        self.loss, self.penalty = loss, penalty
        self.single, self.rounding = loss.dtype != np.float64, factor(loss.shape[0])
        self.c = loss.c.astype(np.float64)

    @cached_property
    def sizes(self) -> np.ndarray:
        """sum_j |Q_ij|, which the rounding of Q x is measured in."""
        size = self.loss.shape[0]
        return self.loss.factor * self.loss.Q.column_sizes(np.ones(size)) * (1.0 + factor(size))

    def _product(self, x: np.ndarray) -> np.ndarray:
        """Q x in the precision of x."""
        product = np.empty(x.size, x.dtype)
        self.loss.Q.dot(x, product)
        return self.loss.factor * product

    def _gradient(self, x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g in double precision, and how far it may be from Q x - c, coordinate by coordinate."""
        if self.single:
            g = self._product(x) - self.c
        skew = (
            0.5 * self.loss.factor * self.loss.skew * np.abs(x).sum()
        )  # f has the gradient (Q + Q')/2 x - c
        return g, self.rounding * (self.sizes * np.abs(x).max() + np.abs(self.c)) + skew

    @cached_property
    def curvature(self) -> float:
        """At most the smallest eigenvalue of Q; 0 if it is not known."""
        Q = self.loss.Q
        if Q.opaque or Q.shape[0] > MAX_EIGENVALUE_COLUMNS:
            return 0.0
        array = self.loss.factor * Q.to_dense().astype(np.float64)
        array = (array + array.T) / 2
        return float(np.linalg.eigvalsh(array)[0]) - factor(len(array)) * float(np.trace(array))

    def bound(self, x: np.ndarray, g: np.ndarray, r: Any) -> Bound:
        x, size = x.astype(np.float64), np.abs(x).astype(np.float64)
        g, e = self._gradient(x, g.astype(np.float64))
        point, more, conjugate = g, 0.0, self.penalty.conjugate_bound(-g, e)
        if (
            not np.isfinite(conjugate)
            and self.curvature > 0
            and {"norm", "seminorm", "set"} & self.penalty.properties
        ):
            # Some g + d is in the domain, the gradient at x + d / Q.
            d, conjugate = outside(self.penalty, -g)
            e = 2.0 * (e + (self.penalty.accuracy + self.rounding) * np.abs(g))
            point, more = (
                g + d,
                float(x @ d + np.sum((np.abs(d) + e) ** 2) / (2.0 * self.curvature)),
            )
        terms = size @ (np.abs(g) + np.abs(self.c))
        value = (
            -0.5 * float(x @ (g + self.c))
            - conjugate
            - more
            - float(e @ size + self.rounding * terms)
        )
        if not np.isfinite(value):
            self.reason = f"the conjugate of {self.penalty.name} is infinite at the gradient"
            return Bound(-np.inf, g)
        return Bound(value, point)

    def objective(self, x: np.ndarray) -> Value:
        """F(x) of an x in double precision, and how far it may be off."""
        product, size, phi = self._product(x), np.abs(x), penalty_value(self, x)
        fun = 0.5 * float(x @ product) - float(x @ self.c) + phi
        terms = float(size @ (self.sizes * size.max(initial=0.0) + np.abs(self.c))) + (
            abs(phi) if phi < np.inf else 0.0
        )
        unit = (
            float(np.finfo(self.loss.dtype).eps) / EPS if self.loss.Q.opaque else 1.0
        )  # its own precision
        return Value(fun, unit * self.rounding * terms)
