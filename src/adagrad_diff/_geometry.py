"""The coordinates in which a problem is easiest: columns of A of size one and, with an intercept, of mean zero."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from .losses import LinearModel, Loss, Multinomial, Poisson, Quadratic
from .losses.base import FunctionLoss, Oracle
from .losses.linear import BinaryModel
from .losses.matrix import CompressedColumns, CompressedRows, Dense, Matrix
from .penalties import Penalty

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
    diagonal = penalty.accepts == "diagonal"
    if blocks is None and penalty.accepts == "scalar":
        blocks = "all"
    if isinstance(loss, FunctionLoss):
        return Geometry(Columns(loss), blocks, None, 1.0)
    if isinstance(loss, Quadratic):
        return Geometry(loss, blocks, _inverse_root(_diagonal(loss)) if diagonal else None, 1.0)
    if not isinstance(loss, LinearModel):
        return Geometry(loss, blocks, None, 1.0)
    mean, square = _moments(loss)
    if not loss.intercept or mean is None:
        scale, center, moved = _inverse_root(square), None, loss
    else:
        scale, center = _inverse_root(square - mean**2, square), mean.astype(loss.dtype)
        moved = copy.copy(loss)
        moved.center = center
    if isinstance(loss, Multinomial):
        scale = None if scale is None else np.repeat(scale, loss.classes)
    return Geometry(moved, blocks, scale if diagonal else None, _unit(loss), center)


def _unit(loss: LinearModel) -> float:
    """What scaled coefficients are measured in: the spread of the targets, or 1 if z is a log-odds, a log rate or a margin."""
    if isinstance(loss, BinaryModel | Multinomial | Poisson):
        return 1.0
    b = loss.b.astype(np.float64)
    center = np.einsum("i,i->", loss.weight, b) if loss.intercept else 0.0
    spread = float(np.sqrt(np.einsum("i,i->", loss.weight, (b - center) ** 2)))
    return spread if spread > 0 else 1.0


def _moments(loss: LinearModel) -> tuple[Any, Any]:
    """Weighted means and mean squares of the columns, or nothing if the matrix is an operator."""
    A, weight = loss.A, loss.weight
    if not isinstance(A, Dense | CompressedRows | CompressedColumns):
        return None, None
    mean, square = np.empty(A.shape[1], A.dtype), np.zeros(A.shape[1])
    A.tdot(weight, 0, len(weight), mean)
    if isinstance(A, Dense):
        for lo, hi in A.row_blocks(0, len(weight)):
            Dense(np.square(A.array[lo:hi])).tdot(weight[lo:hi], 0, hi - lo, part := np.empty_like(mean))
            square += part
    else:
        _squared(A).tdot(weight, 0, len(weight), mean_square := np.empty_like(mean))
        square += mean_square
    return mean.astype(np.float64), square


def _squared(A: CompressedRows | CompressedColumns) -> Matrix:
    indptr, indices, data = A.parts
    return type(A)(indptr, indices, data * data, A.shape)


def _diagonal(loss: Quadratic) -> np.ndarray | None:
    from scipy import sparse

    Q = loss.Q
    if isinstance(Q, Dense):
        return loss.factor * Q.array.diagonal().astype(np.float64)
    if isinstance(Q, CompressedRows | CompressedColumns):
        indptr, indices, data = Q.parts
        return loss.factor * sparse.csr_array((data, indices, indptr), shape=Q.shape).diagonal().astype(np.float64)
    return None


def _inverse_root(square: Any, reference: Any = None) -> np.ndarray | None:
    """1 / sqrt(square), and 1 for columns without any size."""
    if square is None:
        return None
    flat = square <= (0.0 if reference is None else CONSTANT * reference)
    return np.where(flat, 1.0, 1.0 / np.sqrt(np.where(flat, 1.0, square)))


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
