"""Smooth losses near a point: value, gradient, Hessian, and values along a line without a pass over A."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..linalg.block import residuals
from ..losses import Quadratic, Squared
from ..losses.multinomial import softmax_residuals
from .columns import Columns, SparseColumns, columns_of

MAX_DENSE_QUADRATIC = 5000  # coordinates up to which the matrix of a quadratic function is an array


class LossModel(ABC):
    """A loss at a point that moves. Points are flat; with an intercept, columns are centered."""

    size: int  # coordinates
    samples = 0
    # Coordinates up to which the Hessian is formed: if the penalty is smooth, and if it is not.
    max_dense = {True: 2000, False: 2000}
    damping = 0.0  # added to second derivatives, in units of their mean, for steps from far away
    constant = False  # whether the Hessian is the same everywhere
    scale = 0.0  # the size of the value at zero
    value: float
    gradient: np.ndarray

    @abstractmethod
    def start(self, x: np.ndarray) -> None:
        """Go to x."""

    @abstractmethod
    def along(self, index: np.ndarray, d: np.ndarray) -> None:
        """Prepare for steps in the direction d of some coordinates."""

    @abstractmethod
    def at(self, t: float) -> float:
        """Return the value at x + t d."""

    @abstractmethod
    def move(self, t: float) -> None:
        """Go to x + t d."""

    @abstractmethod
    def hessian(self, index: np.ndarray) -> np.ndarray:
        """Return the Hessian on some coordinates."""

    @abstractmethod
    def product(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the product of the same with a vector."""

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Return the diagonal of the Hessian."""

    @abstractmethod
    def noise(self) -> np.ndarray:
        """Return the sizes of the terms of the gradient, which rounding errors are relative to."""

    def bound(self) -> np.ndarray:
        """Return about the largest values of the diagonal of the Hessian at other points."""
        return self.diagonal()

    def unused(self) -> np.ndarray:
        """Return which coordinates the loss does not depend on."""
        return np.zeros(self.size, bool)

    def cost(self, count: int) -> float:
        """Return the multiplications of a Hessian of `count` coordinates."""
        return float(self.samples) * count * count

    def enter(self, x: np.ndarray) -> np.ndarray:
        """Return the coordinates of a point of the loss."""
        return np.array(x, np.float64).ravel()

    def leave(self, x: np.ndarray) -> np.ndarray:
        """Return the point of the loss, flat."""
        return x.copy()

    def slopes(self) -> np.ndarray | None:
        """Return the derivatives of the scalar losses, a dual point."""
        return None


class LinearLossModel(LossModel):
    """A linear model without its ridge term, which counts as part of the penalty."""

    def __init__(self, loss: Any):
        self.loss, self.shape, self.intercept = loss, loss.shape, loss.intercept
        self.weight, self.b = loss.weight.astype(np.float64), loss.b
        self.samples, self.size = len(self.weight), int(np.prod(loss.shape))
        self.classes = self.size // loss.shape[0]
        features, total = loss.A.shape[1], self.weight.sum()  # in single precision not quite one
        moments = loss.A.moments(loss.weight)
        self.center = np.zeros(features)
        if moments is None:
            self.spread = self.square = loss.A.column_sizes(self.weight) ** 2
        else:
            _, flat = moments.scale(self.intercept)
            self.square = moments.square
            self.spread = moments.variance if self.intercept else moments.square
            self.spread = np.where(flat, 0.0, self.spread)
            if self.intercept:
                self.center = moments.mean / total
        if self.intercept:
            self.spread, self.square = np.append(self.spread, 1.0), np.append(self.square, 1.0)
        self.columns = columns_of(loss.A, self.center, self.square, self.intercept)
        self.constant = isinstance(loss, Squared)
        self._selected: tuple[np.ndarray, Columns] | None = None
        self._gram: tuple[np.ndarray, np.ndarray] | None = None
        self._prepare()
        self.scale = abs(self._losses(np.zeros((self.samples, *self.shape[1:])), self.weight))

    def _prepare(self) -> None:
        if isinstance(self.columns, SparseColumns):  # products cost little
            self.max_dense = {True: 400, False: 1000}
        self.b = self.b.astype(np.float64)
        self._kernel = residuals(self.loss.scalar)

    def _losses(self, z: np.ndarray, weight: np.ndarray) -> float:
        """Return the value at predictions z, which become residuals."""
        total = np.zeros(1)
        self._kernel(z, self.b, weight, self.loss.theta, 0, self.samples, total)
        return float(total[0])

    def enter(self, x: np.ndarray) -> np.ndarray:
        X = np.array(x, np.float64)
        if self.intercept:
            X[-1] += self.center @ X[:-1]
        return X.ravel()

    def leave(self, x: np.ndarray) -> np.ndarray:
        X = x.reshape(self.shape).copy()
        if self.intercept:
            X[-1] -= self.center @ X[:-1]
        return np.asarray(X.ravel())

    # ------------------------------------------------------------ points

    def start(self, x: np.ndarray) -> None:
        self._go(self.columns.dot(x.reshape(self.shape)))

    def _go(self, z: np.ndarray) -> None:
        self.z, self.r = z, z.copy()
        self.value = self._losses(self.r, self.weight)
        self.gradient = self.columns.tdot(self.r).ravel()
        self._h: tuple[float, np.ndarray] | None = None

    def along(self, index: np.ndarray, d: np.ndarray) -> None:
        columns, V, _ = self._select(index, d)
        self.dz = columns.dot(V)

    def at(self, t: float) -> float:
        return self._losses(self.z + t * self.dz, self.weight)

    def move(self, t: float) -> None:
        self._go(self.z + t * self.dz)

    def slopes(self) -> np.ndarray | None:
        self._losses(u := self.z.copy(), np.ones(self.samples))
        return u

    def noise(self) -> np.ndarray:
        weight = np.where(self.weight > 0, self.weight, 1.0)
        size = np.sqrt((self.r.T**2 / weight).sum(axis=-1))
        return np.asarray(np.multiply.outer(np.sqrt(self.square), size).ravel())

    # ------------------------------------------------------------ second derivatives

    @property
    def h(self) -> np.ndarray:
        """The weighted second derivatives, damped."""
        if self._h is None or self._h[0] != self.damping:
            h = type(self.loss).curvature(self.z, self.b, self.loss.theta)
            if self.damping and not self.constant:
                h = h + self.damping * (float(self.weight @ h) or self.loss.smoothness or 1.0)
            self._h = self.damping, np.where(self.weight > 0, self.weight * h, 0.0)
        return self._h[1]

    def select(self, index: np.ndarray) -> Columns:
        """Return columns, which are kept for the next step."""
        if self._selected is None or not np.array_equal(self._selected[0], index):
            self._selected = index.copy(), self.columns.take(index)
        return self._selected[1]

    def _select(self, index: np.ndarray, v: np.ndarray) -> tuple[Columns, np.ndarray, Any]:
        """Return columns, v as an array with one row for each, and the places of `index` in it."""
        return self.select(index), v, slice(None)

    def hessian(self, index: np.ndarray) -> np.ndarray:
        if not self.constant:
            return self.select(index).gram(self.h)
        if self._gram is None or not np.array_equal(self._gram[0], index):
            self._gram = index.copy(), self.select(index).gram(self.h)
        return self._gram[1]

    def product(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        columns, V, places = self._select(index, v)
        return np.asarray(columns.tdot(self._times_h(columns.dot(V))).ravel()[places])

    def _times_h(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(self.h * y)

    def diagonal(self) -> np.ndarray:
        return self.columns.squares(self.h)

    def bound(self) -> np.ndarray:
        largest = self.loss.smoothness
        return self.diagonal() if largest is None else largest * self.spread

    def cost(self, count: int) -> float:
        entries = count * self.columns.density
        return self.samples * entries * entries + count**3 / 3

    def unused(self) -> np.ndarray:
        return np.repeat(self.spread == 0, self.classes)


class MultinomialModel(LinearLossModel):
    """The multinomial loss. Coordinates are in row order: feature by feature, class by class."""

    def _prepare(self) -> None:
        self.max_dense = {True: 300, False: 2000}  # a product costs little more than for one class

    def _losses(self, z: np.ndarray, weight: np.ndarray) -> float:
        total = np.zeros(1)
        softmax_residuals(z[:, :, None], self.b, weight, 0, self.samples, total)
        return float(total[0])

    def _go(self, z: np.ndarray) -> None:
        super()._go(z)
        self.p = self.r / np.where(self.weight > 0, self.weight, 1.0)[:, None]
        self.p[np.arange(self.samples), self.b] += 1.0
        self.variance = self.p * (1.0 - self.p)
        self.mean = float(self.weight @ self.variance.mean(axis=1)) or 0.5

    def _select(self, index: np.ndarray, v: np.ndarray) -> tuple[Columns, np.ndarray, Any]:
        features, row = np.unique(index // self.classes, return_inverse=True)
        places = row * self.classes + index % self.classes
        V = np.zeros((features.size, self.classes))
        V.ravel()[places] = v
        return self.select(features), V, places

    def hessian(self, index: np.ndarray) -> np.ndarray:
        """Return blocks A' diag(w p_c (1[c = e] - p_e)) A for classes c and e."""
        columns, V, places = self._select(index, np.zeros(index.size))
        k, C, p, w = len(V), self.classes, self.p, self.weight
        H = np.empty((k, C, k, C))
        for c in range(C):
            H[:, c, :, c] = columns.gram(w * (self.variance[:, c] + self.mean * self.damping))
            for e in range(c):
                H[:, c, :, e] = H[:, e, :, c] = -columns.gram(w * p[:, c] * p[:, e])
        whole = H.reshape(k * C, k * C)
        return whole if index.size == k * C else whole[np.ix_(places, places)]

    def _times_h(self, y: np.ndarray) -> np.ndarray:
        mean = np.einsum("jc,jc->j", self.p, y)[:, None]
        y = self.p * (y - mean) + self.mean * self.damping * y
        return np.asarray(self.weight[:, None] * y)

    def diagonal(self) -> np.ndarray:
        """Return an estimate: means of entries and of second derivatives are multiplied."""
        h = self.weight @ (self.variance + self.mean * self.damping) / self.weight.sum()
        return np.asarray(np.multiply.outer(self.square, h).ravel())

    def bound(self) -> np.ndarray:
        return np.repeat(0.25 * self.spread, self.classes)

    def cost(self, count: int) -> float:
        return 0.5 * float(self.samples) * count * count


class QuadraticModel(LossModel):
    """The quadratic function x'Qx/2 - c'x."""

    constant = True

    def __init__(self, loss: Quadratic):
        self.loss, self.size, self.c = loss, loss.shape[0], loss.c.astype(np.float64)
        self.dense = not loss.Q.opaque and self.size <= MAX_DENSE_QUADRATIC
        if self.dense:
            self.Q = dense_matrix(loss)
        diagonal = loss.Q.diagonal()
        self._diagonal = np.ones(self.size)
        if diagonal is not None:
            self._diagonal = loss.factor * diagonal.astype(np.float64)

    def _times(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return Q x for x with the entries v, zero elsewhere."""
        if self.dense:
            return np.asarray(v @ self.Q[index])
        x, out = np.zeros(self.size), np.empty(self.size)
        x[index] = v
        self.loss.Q.dot(x, out)
        return self.loss.factor * out

    def start(self, x: np.ndarray) -> None:
        self.x, index = x.copy(), np.flatnonzero(x)
        image = self._times(index, x[index])
        self.value = float(0.5 * (x @ image) - x @ self.c)
        self.gradient = image - self.c

    def along(self, index: np.ndarray, d: np.ndarray) -> None:
        self.index, self.d = index, d
        self._slope = float(self.gradient[index] @ d)
        self._curvature = float(d @ self.product(index, d))

    def at(self, t: float) -> float:
        return self.value + t * (self._slope + 0.5 * t * self._curvature)

    def move(self, t: float) -> None:
        x = self.x.copy()
        x[self.index] += t * self.d
        self.start(x)

    def hessian(self, index: np.ndarray) -> np.ndarray:
        return self.Q if index.size == self.size else self.Q[np.ix_(index, index)]

    def product(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.asarray(self._times(index, v)[index])

    def diagonal(self) -> np.ndarray:
        return self._diagonal

    def cost(self, count: int) -> float:
        return float(count) * count if self.dense else np.inf

    def noise(self) -> np.ndarray:
        largest = np.abs(self.x).max()
        return np.asarray(np.abs(self.c) + np.abs(self.gradient) + self._diagonal * largest)


def dense_matrix(loss: Quadratic) -> np.ndarray:
    """Return the symmetric matrix of a quadratic function."""
    Q = loss.Q.to_dense().astype(np.float64, copy=False)
    if loss.skew:
        Q = 0.5 * (Q + Q.T)
    return np.asarray(loss.factor * Q if loss.factor != 1.0 else Q)
