"""Smooth losses of remote data: one pass returns value, gradient and Hessian at a point.

A pass over a cluster takes longer than its computations. So predictions stay with their rows, and
each point is evaluated with all that the next step may need. A step of Newton's method is one pass,
unless it is shortened.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..linalg import Block, Samples
from ..linalg.block import residuals
from .columns import Columns, SourceColumns, block_gram
from .loss_model import LinearLossModel

# Coordinates up to which the first evaluation includes the Hessian of all of them, before it is
# known which ones are needed.
MAX_FIRST_HESSIAN = 256


class Evaluation(NamedTuple):
    """A point and the sums over its samples."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    squares: float  # of r / sqrt(weight)
    mean: float  # of the second derivatives
    places: np.ndarray
    hessian: np.ndarray  # on the coordinates `places`


class RemoteModel(LinearLossModel):
    """The same function as `LinearLossModel`, without predictions in this process."""

    columns: SourceColumns
    here: Evaluation

    def _prepare(self) -> None:
        super()._prepare()
        self._pass: Any = self.loss.A.linear_pass(self.loss.samples(()))
        small = self.size <= MAX_FIRST_HESSIAN and not self.constant
        self._index = np.arange(self.size if small else 0)

    def start(self, x: np.ndarray) -> None:
        self._arrive(self._evaluate(x, self._index))

    def _arrive(self, here: Evaluation) -> None:
        self.here, self.value, self.gradient = here, here.value, here.gradient
        self._next: tuple[float, Evaluation] | None = None

    def along(self, index: np.ndarray, d: np.ndarray) -> None:
        self._next, self._direction = None, np.zeros(self.size)
        self._direction[index] = d

    def at(self, t: float) -> float:
        if self._next is None or self._next[0] != t:
            self._next = t, self._evaluate(self.here.x + t * self._direction, self._index)
        return self._next[1].value

    def move(self, t: float) -> None:
        self.at(t)
        assert self._next is not None
        self._arrive(self._next[1])

    def slopes(self) -> np.ndarray | None:
        if self.loss.dtype != np.float64:
            self.z = self.columns.dot(self.here.x)
            return super().slopes()
        # The certificate evaluates the loss at the same x: this pass is shared with it.
        x = np.ascontiguousarray(self.leave(self.here.x))
        oracle = self.loss.oracle(x)
        oracle(x, np.empty_like(x))
        u = np.divide(oracle.r, self.weight, out=np.zeros(self.samples), where=self.weight > 0)
        return np.asarray(np.clip(u, *self.loss.slopes(self.b, self.loss.theta)))

    def select(self, index: np.ndarray) -> Columns:
        return self.columns.subset(index)

    def noise(self) -> np.ndarray:
        return np.asarray(np.sqrt(self.here.squares * self.square))

    def hessian(self, index: np.ndarray) -> np.ndarray:
        if self.constant:
            return self._weighted(index)
        self._index = index
        if not np.isin(index, self.here.places, assume_unique=True).all():
            self._arrive(self._evaluate(self.here.x, index))
        places = np.searchsorted(self.here.places, index)
        H = self.here.hessian[np.ix_(places, places)]
        return H + self._shift * self._weighted(index) if self.damping else H

    def _weighted(self, index: np.ndarray) -> np.ndarray:
        """Return A' diag(weight) A, which is the same at every point."""
        if self._gram is None or not np.array_equal(self._gram[0], index):
            self._gram = index.copy(), self.select(index).gram(self.weight)
        return self._gram[1]

    @property
    def _shift(self) -> float:
        """The number added to second derivatives by damping."""
        mean = self.here.mean or self.loss.smoothness or 1.0
        return 0.0 if self.constant else self.damping * mean

    def diagonal(self) -> np.ndarray:
        """Return an estimate: means of entries and of second derivatives are multiplied."""
        return np.asarray(self.spread * (self.here.mean + self._shift))

    def product(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        whole = np.zeros(self.size)
        whole[index] = v
        point, direction = self._offset(self.here.x), self._offset(whole)
        sums, total = self._pass.fold(_product, *point, *direction, self._kind, self._shift)
        return np.asarray(self._centered(sums, total)[index])

    @property
    def _kind(self) -> Any:
        return type(self.loss).curvature

    def _offset(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return coefficients and the intercept of columns that are not centered."""
        if not self.intercept:
            return x, 0.0
        return np.ascontiguousarray(x[:-1]), float(x[-1] - self.center @ x[:-1])

    def _centered(self, sums: np.ndarray, total: float) -> np.ndarray:
        return self.columns.centered(sums, total) if self.intercept else sums

    def _evaluate(self, x: np.ndarray, index: np.ndarray) -> Evaluation:
        features = index[index < self.center.size] if index.size else None
        frame = features, self.center, self.intercept
        numbers, sums, hessian = self._pass.fold(_point, *self._offset(x), self._kind, *frame)
        value, total, squares, mean = numbers.tolist()
        gradient = self._centered(sums, total)
        return Evaluation(x.copy(), value, gradient, squares, mean, index, hessian)


# ------------------------------------------------------------ functions of one block


def _predictions(
    block: Block, samples: Samples, x: np.ndarray, offset: float, kind: Any, shift: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions and weighted second derivatives, in double precision."""
    block.dot(x, z := np.empty(block.shape[0]))
    z += offset
    h = samples.weight * (kind(z, samples.b.astype(np.float64), samples.theta) + shift)
    return z, np.where(samples.weight > 0, h, 0.0)


@np.errstate(all="ignore")  # an overflow shows in the value
def _point(
    block: Block,
    samples: Samples,
    x: np.ndarray,
    offset: float,
    kind: Any,
    features: np.ndarray | None,
    center: np.ndarray,
    intercept: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (value, sum of r, sum of r^2 / weight, sum of h), A' r, and the Hessian on features."""
    z, h = _predictions(block, samples, x, offset, kind, 0.0)
    weight, value = samples.weight.astype(np.float64), np.zeros(1)
    to_residuals, b = residuals(samples.scalar), samples.b.astype(np.float64)
    to_residuals(z, b, weight, samples.theta, 0, len(z), value)
    block.tdot(z, sums := np.empty(block.shape[1]))
    squares = np.sum(z**2 / np.where(weight > 0, weight, 1.0))
    hessian = np.empty((0, 0))
    if features is not None:
        hessian = block_gram(block, h, features, center[features], intercept)
    return np.array([value[0], z.sum(), squares, h.sum()]), sums, hessian


@np.errstate(all="ignore")
def _product(
    block: Block,
    samples: Samples,
    x: np.ndarray,
    offset: float,
    v: np.ndarray,
    v_offset: float,
    kind: Any,
    shift: float,
) -> tuple[np.ndarray, float]:
    """Return A' (h (A v + c)) and the sum of h (A v + c), h being that at x."""
    _, h = _predictions(block, samples, x, offset, kind, shift)
    block.dot(v, image := np.empty(block.shape[0]))
    image = h * (image + v_offset)
    block.tdot(image, sums := np.empty(block.shape[1]))
    return sums, float(image.sum())
