"""The multinomial loss near a point: coordinates are read row by row, feature by feature, as penalties see them."""

from __future__ import annotations

import numpy as np

from ..linalg import kernels
from ..losses import Multinomial
from .curvature import Curvature
from .curvature_columns import Chosen
from .curvature_sparse import columns_of


class ClassesCurvature(Curvature):
    """sum_j weight_j (log sum_c exp z_jc - z_jb), without the ridge term."""

    most = {True: 300, False: 2000}  # a product costs little more than one of a single class

    def __init__(self, loss: Multinomial):
        self.loss, self.classes = loss, loss.classes
        self.weight = loss.weight.astype(np.float64)
        self.columns = columns_of(loss.A, self.weight, loss.intercept)
        if loss.A.far and loss.dtype == np.float64:
            self.columns.know(loss.A.moments(loss.weight))
        self.samples, self.size = len(self.weight), self.columns.size * self.classes
        self.tail = self.classes * loss.intercept
        self.scale = float(np.log(self.classes))
        self._known: tuple[np.ndarray, Chosen] | None = None

    def enter(self, x: np.ndarray) -> np.ndarray:
        X = np.array(x, np.float64)
        if self.tail:
            X[-1] += self.columns.center @ X[:-1]
        return X.ravel()

    def leave(self, x: np.ndarray) -> np.ndarray:
        X = x.reshape(self.loss.shape).copy()
        if self.tail:
            X[-1] -= self.columns.center @ X[:-1]
        return X

    def start(self, x: np.ndarray) -> None:
        X = x.reshape(self.loss.shape)
        self._look(self.columns.dot(X) if X.any() else np.zeros((self.samples, self.classes)))

    def _look(self, z: np.ndarray) -> None:
        self.z, r = z, z.copy()
        self.value = self._sum(r)
        self.gradient, self.r = self.columns.tdot(r).ravel(), r
        self.p = r / np.where(self.weight > 0, self.weight, 1.0)[:, None]
        self.p[np.arange(self.samples), self.loss.b] += 1.0
        self.mean = float(self.weight @ np.mean(self.p * (1.0 - self.p), axis=1)) or 0.5

    def _sum(self, z: np.ndarray, weight: np.ndarray | None = None) -> float:
        total = np.zeros(1)
        kernels.softmax_residuals(
            z[:, :, None], self.loss.b, self.weight if weight is None else weight, 0, len(z), total
        )
        return float(total[0])

    def _chosen(self, features: np.ndarray) -> Chosen:
        if self._known is None or not np.array_equal(self._known[0], features):
            self._known = features, self.columns.take(features)
        return self._known[1]

    def _matrix(self, index: np.ndarray, v: np.ndarray) -> tuple[Chosen, np.ndarray, np.ndarray]:
        """Columns, coefficients and where v is among these: flat coordinates as a matrix with a row per feature."""
        if index.size == self.size:
            features = np.arange(self.columns.size)
            where = np.arange(self.size)
        else:
            features, row = np.unique(index // self.classes, return_inverse=True)
            where = row * self.classes + index % self.classes
        V = np.zeros((features.size, self.classes))
        V.ravel()[where] = v
        return self._chosen(features), V, where

    def along(self, index: np.ndarray, d: np.ndarray) -> None:
        chosen, V, _ = self._matrix(index, d)
        self.dz = chosen.dot(V)

    def at(self, t: float) -> float:
        return self._sum(self.z + t * self.dz)

    def move(self, t: float) -> None:
        self._look(self.z + t * self.dz)

    def hessian(self, index: np.ndarray) -> np.ndarray:
        """Blocks A' diag(w p_c (1[c = e] - p_e)) A for classes c and e."""
        chosen, V, where = self._matrix(index, np.zeros(index.size))
        k, C, p = len(V), self.classes, self.p
        H = np.empty((k, C, k, C))
        for c in range(C):
            H[:, c, :, c] = chosen.gram(
                self.weight * (p[:, c] * (1.0 - p[:, c]) + self.mean * self.damping)
            )
            for e in range(c):
                block = chosen.gram(self.weight * p[:, c] * p[:, e])
                H[:, c, :, e] = H[:, e, :, c] = -block
        whole = H.reshape(k * C, k * C)
        return whole if index.size == k * C else whole[np.ix_(where, where)]

    def product(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        chosen, V, where = self._matrix(index, v)
        y = chosen.dot(V)
        more = self.mean * self.damping * y if self.damping else 0.0
        y -= np.einsum("jc,jc->j", self.p, y)[:, None]
        y *= self.p
        y += more
        y *= self.weight[:, None]
        return np.asarray(chosen.tdot(y).ravel()[where])

    def diagonal(self) -> np.ndarray:
        p = (self.p * (1.0 - self.p) + self.mean * self.damping) * self.weight[:, None]
        if self.columns.samples * self.columns.features < 1e7:
            return np.stack([self.columns.diagonal(h) for h in p.T], axis=1).ravel()
        return np.outer(self.columns.square, p.sum(axis=0) / self.weight.sum()).ravel()

    def bound(self) -> np.ndarray:
        return np.repeat(0.25 * self.columns.spread, self.classes)

    def dead(self) -> np.ndarray | None:
        return np.repeat(self.columns.spread == 0, self.classes)

    def cost(self, count: int) -> float:
        return 0.5 * float(self.samples) * count * count

    def noise(self) -> np.ndarray:
        size = np.sqrt(
            np.sum(self.r**2 / np.where(self.weight > 0, self.weight, 1.0)[:, None], axis=0)
        )
        return np.outer(np.sqrt(self.columns.square), size).ravel()

    def slopes(self, x: np.ndarray) -> np.ndarray | None:
        u = self.z.copy()
        self._sum(u, np.ones(self.samples))
        return u
