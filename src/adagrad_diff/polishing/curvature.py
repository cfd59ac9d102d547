"""A loss near a point: value, gradient, Hessian on some coordinates, and its values along a line without a pass over A."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ..linalg import kernels
from ..losses import Squared
from ..losses.linear import LinearModel
from .curvature_columns import Chosen
from .curvature_sparse import SparseColumns, columns_of


class Curvature(ABC):
    """Of a function of `size` coordinates, the last `tail` of them an intercept. Points are flat, intercepts belong to centered
    columns: `enter` and `leave` say how."""

    size: int
    tail = 0
    samples = 0
    most = {
        True: 2000,
        False: 2000,
    }  # coordinates of a Hessian that is formed and factored, if the penalty is smooth, or not
    damping = (
        0.0  # what is added to the second derivatives, in units of their mean: for steps from afar
    )
    constant = False  # whether the Hessian is the same everywhere
    scale = 0.0  # the size of its values: that at zero
    value: float  # at the point where it is
    gradient: np.ndarray

    @abstractmethod
    def start(self, x: np.ndarray) -> None:
        """Go to x."""

    @abstractmethod
    def along(self, index: np.ndarray, d: np.ndarray) -> None:
        """Look in the direction d of some coordinates."""

    @abstractmethod
    def at(self, t: float) -> float:
        """The value at x + t d."""

    @abstractmethod
    def move(self, t: float) -> None:
        """Go to x + t d."""

    @abstractmethod
    def hessian(self, index: np.ndarray) -> np.ndarray:
        """On some coordinates."""

    @abstractmethod
    def product(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The Hessian on some coordinates times a vector."""

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Of the Hessian."""

    @abstractmethod
    def noise(self) -> np.ndarray:
        """What the coordinates of the gradient are sums of, in size: rounding is a part of that."""

    def bound(self) -> np.ndarray:
        """What the diagonal of the Hessian will hardly exceed."""
        return self.diagonal()

    def dead(self) -> np.ndarray | None:
        """Which coordinates the function does not depend on."""
        return None

    def cost(self, count: int) -> float:
        """Multiplications of a Hessian of so many coordinates."""
        return float(self.samples) * count * count

    def enter(self, x: np.ndarray) -> np.ndarray:
        return np.array(x, np.float64).ravel()

    def leave(self, x: np.ndarray) -> np.ndarray:
        return x.copy()

    def slopes(self, x: np.ndarray) -> np.ndarray | None:
        """Of the scalar losses at x, where it is."""
        return None


class LinearCurvature(Curvature):
    """sum_j weight_j l(z_j, b_j), without the ridge term: that is a piece of the penalty."""

    def __init__(self, loss: LinearModel):
        self.loss = loss
        self.weight, self.b = loss.weight.astype(np.float64), loss.b.astype(np.float64)
        self.columns = columns_of(loss.A, self.weight, loss.intercept)
        self.samples, self.size, self.tail = len(self.b), self.columns.size, int(loss.intercept)
        if isinstance(self.columns, SparseColumns):  # products cost little
            self.most = {True: 400, False: 1000}
        self.constant = isinstance(loss, Squared)
        self._kernel, self._total = kernels.residuals(loss.scalar), np.zeros(1)
        self._known: tuple[np.ndarray, Chosen] | None = None
        self._gram: tuple[np.ndarray, np.ndarray] | None = None
        self.scale = abs(self._sum(np.zeros(self.samples)))

    def enter(self, x: np.ndarray) -> np.ndarray:
        x = super().enter(x)
        if self.tail:
            x[-1] += self.columns.center @ x[:-1]
        return x

    def leave(self, x: np.ndarray) -> np.ndarray:
        x = x.copy()
        if self.tail:
            x[-1] -= self.columns.center @ x[:-1]
        return x

    def start(self, x: np.ndarray) -> None:
        self._look(self.columns.dot(x) if x.any() else np.zeros(self.samples))

    def _look(self, z: np.ndarray) -> None:
        self.z, r = z, z.copy()
        self.value = self._sum(r)
        self.gradient, self.r = self.columns.tdot(r), r
        self._h: tuple[float, np.ndarray] | None = None

    def _sum(self, z: np.ndarray) -> float:
        """The value at z, which becomes residuals."""
        self._total[0] = 0.0
        self._kernel(z, self.b, self.weight, self.loss.theta, 0, self.samples, self._total)
        return float(self._total[0])

    @property
    def h(self) -> np.ndarray:
        """The weighted second derivatives, larger if steps are to be shorter."""
        if self._h is None or self._h[0] != self.damping:
            curvature = type(self.loss).curvature
            assert curvature is not None
            h = curvature(self.z, self.b, self.loss.theta)
            if self.damping and not self.constant:
                h = h + self.damping * (float(self.weight @ h) or self.loss.smoothness or 1.0)
            with np.errstate(invalid="ignore"):
                self._h = self.damping, np.where(self.weight > 0, self.weight * h, 0.0)
        return self._h[1]

    def chosen(self, index: np.ndarray) -> Chosen:
        if self._known is None or not np.array_equal(self._known[0], index):
            self._known = index.copy(), self.columns.take(index)
        return self._known[1]

    def along(self, index: np.ndarray, d: np.ndarray) -> None:
        self.dz = self.chosen(index).dot(d)

    def at(self, t: float) -> float:
        with np.errstate(all="ignore"):
            return self._sum(self.z + t * self.dz)

    def move(self, t: float) -> None:
        self._look(self.z + t * self.dz)

    def hessian(self, index: np.ndarray) -> np.ndarray:
        if not self.constant:
            return self.chosen(index).gram(self.h)
        if self._gram is None or not np.array_equal(self._gram[0], index):
            self._gram = index.copy(), self.chosen(index).gram(self.h)
        return self._gram[1]

    def product(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        chosen = self.chosen(index)
        return chosen.tdot(self.h * chosen.dot(v))

    def diagonal(self) -> np.ndarray:
        return self.columns.diagonal(self.h)

    def bound(self) -> np.ndarray:
        if self.loss.smoothness is None:
            return self.diagonal()
        return self.loss.smoothness * self.columns.spread

    def cost(self, count: int) -> float:
        entries = count * self.columns.density
        return self.samples * entries * entries + count**3 / 3

    def dead(self) -> np.ndarray | None:
        return np.asarray(self.columns.spread == 0)

    def noise(self) -> np.ndarray:
        size = np.sqrt(np.sum(self.r**2 / np.where(self.weight > 0, self.weight, 1.0)))
        return np.asarray(size * np.sqrt(self.columns.square))

    def slopes(self, x: np.ndarray) -> np.ndarray | None:
        u, total = self.z.copy(), np.zeros(1)
        self._kernel(u, self.b, np.ones(self.samples), self.loss.theta, 0, self.samples, total)
        return u
