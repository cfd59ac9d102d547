"""Quadratic functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ..linalg import Source, as_source
from ..linalg.eigen import extreme_eigenvalues, largest_eigenvalue
from .base import Coordinates, Loss, Oracle

# How far from symmetric or semidefinite Q may be because of rounding, relative to its largest entry
# or eigenvalue.
ASYMMETRY = 1e-6
INDEFINITENESS = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-6}


class Quadratic(Loss):
    r"""A convex quadratic :math:`f(x) = \tfrac12 x^\top Q x - c^\top x`.

    Parameters
    ----------
    Q : array (d, d), sparse matrix, LinearOperator or Source
        Symmetric and positive semidefinite. A few products with Q check this; an operator is not
        checked.
    c : array (d,)

    Examples
    --------
    >>> from adagrad_diff import Quadratic
    >>> f, g = Quadratic([[2.0, 0.0], [0.0, 1.0]], [1.0, 1.0]).value_and_grad([1.0, 0.0])
    >>> f, g.tolist()
    (0.0, [1.0, -1.0])
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    differentiable = True
    factor = 1.0  # f uses factor * Q
    skew = 0.0  # the largest |Q_ij - Q_ji|

    def __init__(self, Q: Any, c: Any):
        self.Q, name = as_source(Q, "Q"), type(self).__name__
        if self.Q.shape[0] != self.Q.shape[1]:
            raise ValueError(
                f"The matrix of {name} must be square. Got shape {self.Q.shape} instead."
            )
        self.shape, self.dtype = self.Q.shape[:1], np.dtype(self.Q.dtype)
        self._check_convex(name)
        c = _check.vector(c, "c", self.shape[0], what="one value per row of Q")
        self.c = _check.cast(c, self.dtype, "c")

    def _check_convex(self, name: str) -> None:
        Q, diagonal = self.Q, self.Q.diagonal()
        if diagonal is None:
            return  # an operator does not show its entries
        largest, self.skew = Q.largest(), Q.skew()
        if self.skew > ASYMMETRY * largest:
            raise ValueError(f"The matrix of {name} must be symmetric. Use (Q + Q.T) / 2.")
        if diagonal.min() < -ASYMMETRY * largest:
            raise ValueError(
                f"The matrix of {name} has a negative diagonal entry: f is not convex."
            )
        low, high = extreme_eigenvalues(self._product, Q.shape[0])
        if low < -INDEFINITENESS[self.dtype] * high:
            raise ValueError(
                f"The matrix of {name} has a negative eigenvalue ({low:.2g}): f is not convex. "
                "A kernel must be positive semidefinite. If it is not because of rounding, add a "
                "small multiple of the identity."
            )

    @property
    def matrix(self) -> Source:
        return self.Q

    def oracle(self, x: np.ndarray) -> Oracle:
        self._check_shape(x, f"{self.shape[0]} coordinates")
        return self.evaluate

    @np.errstate(all="ignore")  # overflows show in the value
    def evaluate(self, x: np.ndarray, out: np.ndarray) -> Any:
        """Return f(x) and write the gradient Q x - c into `out`."""
        c = self.c if x.ndim == 1 else self.c[:, None]
        self.Q.dot(x, out)
        out *= self.factor
        value = np.einsum("i...,i...->...", x, 0.5 * out - c, dtype=np.float64)
        out -= c
        return float(value) if x.ndim == 1 else value

    def lipschitz(self) -> float:
        """Return the largest eigenvalue of the matrix."""
        return self.factor * largest_eigenvalue(self._product, self.shape[0])

    def _product(self, v: np.ndarray) -> np.ndarray:
        """Return Q v in the precision of Q."""
        out = np.empty(v.shape, self.dtype)
        self.Q.dot(v.astype(self.dtype), out)
        return out

    def coordinates(self) -> Coordinates:
        """Return coordinates of curvature one, except where the curvature is zero."""
        diagonal = self.Q.diagonal()
        if diagonal is None:
            return Coordinates(self)
        curvature = self.factor * diagonal.astype(np.float64)
        return Coordinates(self, 1.0 / np.sqrt(np.where(curvature > 0, curvature, 1.0)))
