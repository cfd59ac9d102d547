"""The dual function of a quadratic function f(x) = x'Qx/2 - c'x: with g = Q x - c, D(g) = -x'Qx/2 - phi*(-g)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..losses import Quadratic
from ..penalties import Penalty
from ._dual import Dual
from ._noise import SAFETY
from ._rounding import column_sizes, conjugate_above, factor


class QuadraticDual(Dual):
    """The dual point is the gradient g. For the dual of an SVM, D is the classifier's objective.

    That Q is positive semidefinite is taken on trust.
    """

    def __init__(self, loss: Quadratic, penalty: Penalty):
        self.loss, self.penalty = loss, penalty
        self.single, self.rounding = loss.dtype != np.float64, factor(loss.shape[0])
        self.products = 3 if self.single else 0
        self.c = loss.c.astype(np.float64)

    @cached_property
    def sizes(self) -> np.ndarray:
        """sum_j |Q_ij|, which the rounding of Q x is measured in."""
        return self.loss.factor * column_sizes(self.loss.Q, np.ones(self.loss.shape[0]))

    def _product(self, x: np.ndarray) -> np.ndarray:
        """Q x in the precision of x."""
        Q, product = self.loss.Q, np.empty(x.size, x.dtype)
        for lo, hi in Q.row_blocks(0, x.size):
            Q.dot(x, lo, hi, product[lo:hi])
        return self.loss.factor * product

    def _gradient(self, x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g in double precision, and how far it may be from Q x - c, coordinate by coordinate."""
        if self.single:
            g = self._product(x) - self.c
        skew = 0.5 * self.loss.factor * self.loss.skew * np.abs(x).sum()  # f has the gradient (Q + Q')/2 x - c
        return g, self.rounding * (self.sizes * np.abs(x).max() + np.abs(self.c)) + skew

    def bound(self, x, g, r):
        x = x.astype(np.float64)
        g, e = self._gradient(x, g.astype(np.float64))
        conjugate = conjugate_above(self.penalty, -g, e)
        if not np.isfinite(conjugate):
            self.reason = f"the conjugate of {self.penalty.name} is infinite at the gradient"
            return -np.inf, g
        terms = np.abs(x) @ (np.abs(g) + np.abs(self.c))
        return -0.5 * float(x @ (g + self.c)) - conjugate - float(e @ np.abs(x) + self.rounding * terms), g

    def noise(self, x, r):
        x, eps = x.astype(np.float64), float(np.finfo(self.loss.dtype).eps)
        size, phi = np.abs(x), float(self.penalty.value(x))
        noise = self.rounding * (float(size @ (self.sizes * size.max() + np.abs(self.c))) + (abs(phi) if phi < np.inf else 0.0))
        if self.single:  # errors are measured: a bound that counts the terms would be useless
            product, rounded = self._product(x), self._product(x.astype(self.loss.dtype))
            error = np.abs(product - rounded) + 16 * eps * (np.abs(product) + np.abs(self.c))
            noise += SAFETY * float(size @ error)
        return noise
