"""A linear model whose rows live elsewhere: one fold brings value, gradient and Hessian of a point together.

A round of a cluster takes longer than what is computed in it. So predictions stay with their rows, and a point is asked for
everything that the next step may want: a step of Newton's method is one fold, unless it is cut short.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..linalg import Block, Samples, kernels
from ..losses.linear import LinearModel
from .curvature import LinearCurvature
from .curvature_columns import Chosen, dense_part

ASKED_AT_ONCE = 256  # coordinates up to which the Hessian of all of them is asked for, before anybody knows which ones matter
COPIED_TOGETHER = 1 << 20  # entries of rows that are copied together


class Visit(NamedTuple):
    """What is known of a point."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    squares: float  # the sum of r^2 / weight
    mean: float  # of the second derivatives
    places: np.ndarray
    hessian: np.ndarray  # on these coordinates


class FarCurvature(LinearCurvature):
    """The same function as `LinearCurvature`, without anything of the samples but their targets."""

    here: Visit

    def __init__(self, loss: LinearModel):
        super().__init__(loss)
        self._pass: Any = loss.A.linear_pass(loss.samples(()))
        if loss.dtype == np.float64:
            self.columns.know(loss.A.moments(loss.weight))
        self._wanted = np.arange(
            self.size if self.size <= ASKED_AT_ONCE and not self.constant else 0
        )
        self._plain: tuple[np.ndarray, np.ndarray] | None = (
            None  # the Hessian for second derivatives of one, and where
        )

    def start(self, x: np.ndarray) -> None:
        self._next: tuple[float, Visit] | None = None
        self._arrive(self._visit(x, self._wanted))

    def _arrive(self, visit: Visit) -> None:
        self.here, self.value, self.gradient = visit, visit.value, visit.gradient

    def chosen(self, index: np.ndarray) -> Chosen:
        return Chosen(self.columns, index)  # not a copy

    def along(self, index: np.ndarray, d: np.ndarray) -> None:
        self._next, self._direction = None, np.zeros(self.size)
        self._direction[index] = d

    def at(self, t: float) -> float:
        if self._next is None or self._next[0] != t:
            self._next = t, self._visit(self.here.x + t * self._direction, self._wanted)
        return self._next[1].value

    def move(self, t: float) -> None:
        self.at(t)
        assert self._next is not None
        self._arrive(self._next[1])

    def hessian(self, index: np.ndarray) -> np.ndarray:
        if self.constant:
            return self._of_ones(index)
        self._wanted = index
        if not np.isin(index, self.here.places, assume_unique=True).all():
            self._arrive(self._visit(self.here.x, index))
        places = np.searchsorted(self.here.places, index)
        H = self.here.hessian[np.ix_(places, places)]
        return H + self._shift * self._of_ones(index) if self.damping else H

    def _of_ones(self, index: np.ndarray) -> np.ndarray:
        """A' diag(weight) A, which is the same everywhere."""
        if self._plain is None or not np.array_equal(self._plain[0], index):
            self._plain = (
                index.copy(),
                self._pass.fold(_of_ones, self._features(index), *self._frame),
            )
        return self._plain[1]

    @property
    def _shift(self) -> float:
        """What is added to second derivatives."""
        return (
            0.0 if self.constant else self.damping * (self.here.mean or self.loss.smoothness or 1.0)
        )

    def product(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        whole = np.zeros(self.size)
        whole[index] = v
        points = np.stack([self.here.x, whole], axis=1)
        sums, total = self._pass.fold(_product, *self._sent(points), self._kind, self._shift)
        return np.asarray(self._whole(sums, total)[index])

    def diagonal(self) -> np.ndarray:
        call = (*self._sent(self.here.x), self._kind, self._shift, *self._frame)
        return np.asarray(self._pass.fold(_diagonal, *call))

    def noise(self) -> np.ndarray:
        return np.asarray(np.sqrt(self.here.squares * self.columns.square))

    def slopes(self, x: np.ndarray) -> np.ndarray | None:
        """By the pass of the loss itself: who proves x asks the same of it."""
        if self.loss.dtype != np.float64:
            self.z = self.columns.dot(x)
            return super().slopes(x)
        here = np.ascontiguousarray(self.leave(x))
        oracle = self.loss.oracle(here)
        oracle(here, np.empty_like(here))
        u = np.divide(oracle.r, self.weight, out=np.zeros(self.samples), where=self.weight > 0)
        return np.asarray(np.clip(u, *self.loss.slopes(self.b, self.loss.theta)))

    # ------------------------------------------------------------ there and back

    @property
    def _kind(self) -> Any:
        return type(self.loss).curvature

    @property
    def _frame(self) -> tuple[np.ndarray, bool]:
        return self.columns.center, bool(self.tail)

    def _features(self, index: np.ndarray) -> np.ndarray:
        return index[index < self.columns.features]

    def _sent(self, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """A point as predictions are made of it: coefficients, and what is added."""
        if not self.tail:
            return x, 0.0
        return np.ascontiguousarray(x[:-1]), x[-1] - self.columns.center @ x[:-1]

    def _whole(self, sums: np.ndarray, total: float) -> np.ndarray:
        """A' r of centered columns, from A' r and the sum of r."""
        return np.append(sums - self.columns.center * total, total) if self.tail else sums

    def _visit(self, x: np.ndarray, index: np.ndarray) -> Visit:
        call = (
            *self._sent(x),
            self._kind,
            self._features(index) if index.size else None,
            *self._frame,
        )
        numbers, sums, hessian = self._pass.fold(_point, *call)
        value, total, squares, mean = numbers.tolist()
        return Visit(x.copy(), value, self._whole(sums, total), squares, mean, index, hessian)


# ------------------------------------------------------------ of one block


@np.errstate(all="ignore")  # what overflows is seen in the value
def _point(
    block: Block,
    samples: Samples,
    x: np.ndarray,
    offset: Any,
    kind: Any,
    features: np.ndarray | None,
    center: np.ndarray,
    intercept: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(value, sum of r, sum of r^2 / weight, mean second derivative), A' r, and the Hessian on some features."""
    weight, z, h = _bent(block, samples, x, offset, kind, 0.0)
    value = np.zeros(1)
    kernels.residuals(samples.scalar)(
        z, samples.b.astype(np.float64), weight, samples.theta, 0, len(z), value
    )
    block.tdot(z, sums := np.empty(block.shape[1]))
    squares = np.sum(z**2 / np.where(weight > 0, weight, 1.0))
    hessian = np.empty((0, 0)) if features is None else _gram(block, h, features, center, intercept)
    return np.array([value[0], z.sum(), squares, h.sum()]), sums, hessian


def _bent(
    block: Block, samples: Samples, x: np.ndarray, offset: Any, kind: Any, shift: float
) -> tuple[np.ndarray, ...]:
    """Weights, predictions, and weighted second derivatives, all in double precision."""
    weight = samples.weight.astype(np.float64)
    block.dot(x, z := np.empty(block.shape[0]))
    z += offset
    h = kind(z, samples.b.astype(np.float64), samples.theta) + shift
    return weight, z, np.where(weight > 0, weight * h, 0.0)


def _gram(
    block: Block, h: np.ndarray, features: np.ndarray, center: np.ndarray, intercept: bool
) -> np.ndarray:
    """A' diag(h) A of some columns, a part of the rows after the other: copies stay small."""
    size, samples = features.size + intercept, block.shape[0]
    total, rows = np.zeros((size, size)), max(1, COPIED_TOGETHER // max(size, 1))
    for lo in range(0, samples, rows):
        hi = min(lo + rows, samples)
        half = (
            dense_part(block.cut(lo, hi), features, center, intercept) * np.sqrt(h[lo:hi])[:, None]
        )
        total += half.T @ half
    return total


def _of_ones(
    block: Block, samples: Samples, features: np.ndarray, center: np.ndarray, intercept: bool
) -> np.ndarray:
    return _gram(block, samples.weight.astype(np.float64), features, center, intercept)


@np.errstate(all="ignore")
def _product(
    block: Block, samples: Samples, points: np.ndarray, offsets: Any, kind: Any, shift: float
) -> tuple[np.ndarray, float]:
    """A' (h (A v + c)) and the sum of h (A v + c), h being that at x: `points` are x and v."""
    both = np.broadcast_to(offsets, 2)
    h = _bent(block, samples, np.ascontiguousarray(points[:, 0]), both[0], kind, shift)[2]
    block.dot(np.ascontiguousarray(points[:, 1]), image := np.empty(block.shape[0]))
    image = h * (image + both[1])
    block.tdot(image, sums := np.empty(block.shape[1]))
    return sums, float(image.sum())


@np.errstate(all="ignore")
def _diagonal(
    block: Block,
    samples: Samples,
    x: np.ndarray,
    offset: Any,
    kind: Any,
    shift: float,
    center: np.ndarray,
    intercept: bool,
) -> np.ndarray:
    """sum_j h_j (a_ji - center_i)^2, and with an intercept the sum of h."""
    h = _bent(block, samples, x, offset, kind, shift)[2]
    block.applied(np.square).tdot(h, total := np.empty(block.shape[1]))
    if not intercept:
        return total
    block.tdot(h, shifted := np.empty(block.shape[1]))
    return np.append(np.maximum(total + center * (center * h.sum() - 2.0 * shifted), 0.0), h.sum())
