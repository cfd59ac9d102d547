"""Quadratic functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ..data import as_source
from ..data.eigen import extreme_eigenvalues, largest_eigenvalue
from .base import Coordinates, Loss, Oracle

INDEFINITE = {
    4: 1e-4,
    8: 1e-6,
}  # part of the largest eigenvalue that a negative one may have, by the bytes of a number


class Quadratic(Loss):
    r"""A convex quadratic :math:`f(x) = \tfrac12 x^\top Q x - c^\top x`, Q symmetric and positive semidefinite.

    Parameters
    ----------
    Q : array (d, d), sparse matrix, LinearOperator or Source
        Symmetric and positive semidefinite: what is clearly not, on a few products with Q, is refused. An operator is taken at
        its word.
    c : array (d,)

    Examples
    --------
    >>> from adagrad_diff import Quadratic
    >>> f, g = Quadratic([[2.0, 0.0], [0.0, 1.0]], [1.0, 1.0]).value_and_grad([1.0, 0.0])
    >>> f, g.tolist()
    (0.0, [1.0, -1.0])
    """

    shape: tuple[int, ...]
    differentiable = True
    factor = 1.0  # f uses factor * Q
    names = ("Q", "c")  # of the matrix and the linear term, in messages
    skew = 0.0  # how far Q is from symmetric: its largest |Q_ij - Q_ji|

    def __init__(self, Q: Any, c: Any):
        name = type(self).__name__
        self.Q = as_source(Q, self.names[0])
        if self.Q.shape[0] != self.Q.shape[1]:
            raise ValueError(
                f"The matrix of {name} must be square. Got shape {self.Q.shape} instead."
            )
        self._check_symmetric(name)
        self.shape, self.dtype = self.Q.shape[:1], np.dtype(self.Q.dtype)
        self.c = _check.cast(self.check_linear_term(c), self.dtype, self.names[1])

    def check_linear_term(self, c: Any) -> np.ndarray:
        """c as this loss wants it, or an error that says what is wrong with it."""
        return _check.vector(c, "c", self.shape[0], what="one value per row of Q")

    def _check_symmetric(self, name: str) -> None:
        Q, diagonal = self.Q, self.Q.diagonal()
        if diagonal is None:
            return  # an operator is taken at its word
        largest, self.skew = Q.largest(), Q.skew()
        if self.skew > 1e-6 * largest:
            raise ValueError(f"The matrix of {name} must be symmetric. Use (Q + Q.T) / 2.")
        if diagonal.min() < -1e-6 * largest:
            raise ValueError(
                f"The matrix of {name} has a negative diagonal entry: f is not convex."
            )
        low, high = extreme_eigenvalues(self._product, Q.shape[0])
        if low < -INDEFINITE[np.dtype(Q.dtype).itemsize] * high:
            raise ValueError(
                f"The matrix of {name} has a negative eigenvalue ({low:.2g}): f is not convex. A kernel must be positive "
                "semidefinite; if rounding has spoilt that, add a small multiple of the identity."
            )

    def oracle(self, x: np.ndarray) -> QuadraticOracle:
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[0]:
            raise ValueError(
                f"x must have {self.shape[0]} coordinates. Got shape {x.shape} instead."
            )
        return QuadraticOracle(self)

    def lipschitz(self) -> float:
        """The largest eigenvalue of Q."""
        return self.factor * largest_eigenvalue(self._product, self.shape[0])

    def _product(self, v: np.ndarray) -> np.ndarray:
        """Q v in the precision of Q."""
        out = np.empty(v.shape, self.Q.dtype)
        self.Q.dot(v.astype(self.Q.dtype), out)
        return out

    def coordinates(self) -> Coordinates:
        """Coordinates of curvature one; those without any stay as they are."""
        diagonal = self.Q.diagonal()
        if diagonal is None:
            return Coordinates(self)
        curvature = self.factor * diagonal.astype(np.float64)
        return Coordinates(
            self,
            np.where(curvature > 0, 1.0 / np.sqrt(np.where(curvature > 0, curvature, 1.0)), 1.0),
        )


class QuadraticOracle(Oracle):
    """One product with Q per evaluation: g = Q x - c, f = <x, g - c> / 2."""

    def __init__(self, loss: Quadratic):
        self.loss = loss

    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        with np.errstate(all="ignore"):  # what overflows is seen in the value
            return self._evaluate(x, out)

    def _evaluate(self, x: np.ndarray, out: np.ndarray) -> Any:
        loss = self.loss
        loss.Q.dot(x, out)
        if loss.factor != 1.0:
            out *= loss.factor
        if x.ndim == 1:
            value = 0.5 * np.dot(x, out) - np.dot(x, loss.c)
            out -= loss.c
            return float(value)
        value = 0.5 * np.einsum("ik,ik->k", x, out, dtype=np.float64) - np.einsum(
            "ik,i->k", x, loss.c, dtype=np.float64
        )
        out -= loss.c[:, None]
        return value
