"""The coordinates in which a problem is easiest: columns of A of size one and, with an intercept, of mean zero."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.matrix import CompressedColumns, CompressedRows, Dense, Matrix
from ..losses import LinearModel, Loss, Multinomial, Poisson, Quadratic
from ..losses.base import FunctionLoss, Oracle
from ..losses.linear import BinaryModel
from ..penalties import Penalty

LARGE = 1e140  # targets whose squares are not added up as they are
CONSTANT = 1e-12  # a column whose variance is less than this part of its mean square is constant


@dataclass
class Geometry:
    """A loss in other coordinates: `scale` for the rule, and the way there and back for the intercept."""

    loss: Loss  # with centered columns, if there is an intercept
    blocks: Any
    scale: np.ndarray | None  # one over the size of each column
    unit: float  # typical size of a scaled coordinate
    center: np.ndarray | None = None

    def forward(self, x: np.ndarray) -> np.ndarray:
        """x in the coordinates of `loss`: z = A w + c = (A - center) w + (c + center w)."""
        return self._shift(x, 1.0)

    def back(self, x: np.ndarray) -> np.ndarray:
        """The inverse."""
        return self._shift(x, -1.0)

    def _shift(self, x: np.ndarray, sign: float) -> np.ndarray:
        x = x.copy()
        if self.center is not None:
            x[-1] += sign * (self.center @ x[:-1])
        return x

    def unscaled(self, x: np.ndarray) -> np.ndarray:
        """The difference of two points, in units of `scale`."""
        if self.scale is None:
            return x
        flat = x.reshape(-1).copy()
        flat[: self.scale.size] /= self.scale
        return flat


def of(loss: Loss, penalty: Penalty, blocks: Any) -> Geometry:
    """The geometry of a problem; a scale only where the penalty can do with one."""
    if loss.shape is not None:  # a foreign penalty may have to know it, to tell which metrics it accepts
        size = int(np.prod(loss.shape))
        penalty.check_size(size - size // loss.shape[0] if loss.intercept else size)
    diagonal = penalty.accepts == "diagonal"
    if blocks is None and penalty.accepts == "scalar":
        blocks = "all"
    if isinstance(loss, FunctionLoss):
        return Geometry(Columns(loss), blocks, None, 1.0)
    if isinstance(loss, Quadratic):
        return Geometry(loss, blocks, _inverse_root(_diagonal(loss)) if diagonal else None, 1.0)
    if not isinstance(loss, LinearModel):
        return Geometry(loss, blocks, None, 1.0)
    mean, square, filled = _moments(loss)
    center, moved = None, loss
    if loss.intercept and mean is not None:
        moved = copy.copy(loss)
        moved.center = center = mean.astype(loss.dtype)
    scale = None if mean is None else _column_scale(mean if loss.intercept else 0.0 * mean, square, filled)
    if isinstance(loss, Multinomial):
        scale = None if scale is None else np.repeat(scale, loss.classes)
    return Geometry(moved, blocks, scale if diagonal else None, _unit(loss), center)


def _unit(loss: LinearModel) -> float:
    """What scaled coefficients are measured in: the spread of the targets, or 1 if z is a log-odds, a log rate or a margin."""
    if isinstance(loss, BinaryModel | Multinomial | Poisson):
        return 1.0
    b = loss.b.astype(np.float64)
    center = np.einsum("i,i->", loss.weight, b) if loss.intercept else 0.0
    b -= center
    largest = float(np.abs(b).max())
    size = largest if largest > LARGE else 1.0  # so that its square is a number
    spread = size * float(np.sqrt(np.einsum("i,i->", loss.weight, (b / size) ** 2)))
    return spread if spread > CONSTANT * abs(center) else abs(center) or 1.0


def _moments(loss: LinearModel) -> tuple[Any, Any, Any]:
    """Weighted means of the columns, of their squares, and the part of their entries that is not zero; None of an operator."""
    A, weight = loss.A, loss.weight
    if not isinstance(A, Dense | CompressedRows | CompressedColumns):
        return None, None, None
    sums = np.zeros((3, A.shape[1]))
    for first, last, parts in _pieces(A):
        for k, part in enumerate(parts):
            part.tdot(weight[first:last], 0, last - first, column_sums := np.empty(A.shape[1], A.dtype))
            sums[k] += column_sums
    mean, square, filled = sums
    return mean, square, filled


def _pieces(A: Dense | CompressedRows | CompressedColumns) -> Iterator[tuple[int, int, list[Matrix]]]:
    """A, its squares and where it is not zero, for ranges of few rows (or, of compressed columns, for all)."""
    for lo, hi in A.row_blocks(0, A.shape[0]):
        if isinstance(A, Dense):
            yield lo, hi, [Dense(part) for part in _powers(A.array[lo:hi])]
            continue
        indptr, indices, data = A.parts
        if isinstance(A, CompressedRows):
            first, last = indptr[lo], indptr[hi]
            indptr, indices, data = indptr[lo : hi + 1] - first, indices[first:last], data[first:last]
        yield lo, hi, [type(A)(indptr, indices, part, (hi - lo, A.shape[1])) for part in _powers(data)]


def _powers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers, their squares, and 1 where they are not zero."""
    return values, np.square(values), (values != 0).astype(values.dtype)


def _diagonal(loss: Quadratic) -> np.ndarray | None:
    from scipy import sparse

    Q = loss.Q
    if isinstance(Q, Dense):
        return loss.factor * Q.array.diagonal().astype(np.float64)
    if isinstance(Q, CompressedRows | CompressedColumns):
        indptr, indices, data = Q.parts
        return loss.factor * sparse.csr_array((data, indices, indptr), shape=Q.shape).diagonal().astype(np.float64)
    return None


def _column_scale(mean: np.ndarray, square: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """One over the size that the entries of a column have where they are not zero: how rare a feature is does not count."""
    variance = square - mean**2
    flat = variance <= CONSTANT * square
    return np.where(flat, 1.0, np.sqrt(filled / np.where(flat, 1.0, variance)))


def _inverse_root(square: np.ndarray | None) -> np.ndarray | None:
    """1 / sqrt(square), and 1 for coordinates without any size."""
    return None if square is None else np.where(square > 0, 1.0 / np.sqrt(np.where(square > 0, square, 1.0)), 1.0)


class Columns(Loss):
    """A function of one x, applied to every trajectory by itself."""

    def __init__(self, loss: FunctionLoss):
        self.loss = loss

    def oracle(self, x):
        return ColumnsOracle(self.loss.oracle(x[..., 0]))


class ColumnsOracle(Oracle):
    def __init__(self, oracle: Oracle):
        self.oracle = oracle

    def __call__(self, x, out):
        values, g = np.empty(x.shape[-1]), np.empty(x.shape[:-1], out.dtype)
        for k in range(x.shape[-1]):
            values[k] = self.oracle(np.ascontiguousarray(x[..., k]), g)
            out[..., k] = g
        return values
