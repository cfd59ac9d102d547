"""A quadratic function near a point."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..losses import Quadratic
from .curvature import Curvature

DENSE_QUADRATIC = 5000  # coordinates up to which the matrix is held as an array


class QuadraticCurvature(Curvature):
    """x'Qx/2 - c'x."""

    constant = True

    def __init__(self, loss: Quadratic):
        self.loss, self.size, self.c = loss, loss.shape[0], loss.c.astype(np.float64)
        self.dense = not loss.Q.opaque and self.size <= DENSE_QUADRATIC

    @cached_property
    def Q(self) -> np.ndarray:
        Q = self.loss.Q.to_dense().astype(np.float64, copy=False)
        if self.loss.skew:
            Q = 0.5 * (Q + Q.T)
        return np.asarray(self.loss.factor * Q if self.loss.factor != 1.0 else Q)

    def _times(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Q v for a vector that is zero elsewhere."""
        whole = index.size == self.size
        if self.dense:
            return np.asarray(self.Q @ v if whole else v @ self.Q[index])
        x = v
        if not whole:
            x = np.zeros(self.size)
            x[index] = v
        self.loss.Q.dot(np.ascontiguousarray(x, np.float64), out := np.empty(self.size))
        return self.loss.factor * out

    def start(self, x: np.ndarray) -> None:
        self.x = x.copy()
        self._look()

    def _look(self) -> None:
        places = np.flatnonzero(self.x)
        image = self._times(places, self.x[places]) if places.size else np.zeros(self.size)
        self.value = float(0.5 * (self.x @ image) - self.x @ self.c)
        self.gradient = image - self.c

    def along(self, index: np.ndarray, d: np.ndarray) -> None:
        self.index, self.d = index, d
        self._slope, self._curve = (
            float(self.gradient[index] @ d),
            float(d @ self._times(index, d)[index]),
        )

    def at(self, t: float) -> float:
        return self.value + t * (self._slope + 0.5 * t * self._curve)

    def move(self, t: float) -> None:
        self.x[self.index] += t * self.d
        self._look()

    def hessian(self, index: np.ndarray) -> np.ndarray:
        return self.Q if index.size == self.size else self.Q[np.ix_(index, index)]

    def product(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.asarray(self._times(index, v)[index])

    @cached_property
    def _diagonal(self) -> np.ndarray:
        diagonal = self.loss.Q.diagonal()
        return (
            np.ones(self.size)
            if diagonal is None
            else self.loss.factor * diagonal.astype(np.float64)
        )

    def diagonal(self) -> np.ndarray:
        return self._diagonal

    def cost(self, count: int) -> float:
        return float(count) * count if self.dense else np.inf

    def noise(self) -> np.ndarray:
        return np.asarray(
            np.abs(self.c) + np.abs(self.gradient) + self.diagonal() * np.abs(self.x).max()
        )
