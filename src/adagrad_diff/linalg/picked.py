"""Rows of A by their numbers, where they are: what minibatches are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import kernels
from .block import writeable
from .source import Source
from .stored import CompressedColumns, CompressedRows, Dense


class PickedDense:
    """Those of an array."""

    def __init__(self, array: np.ndarray):
        self.entries = writeable(array if array.flags.c_contiguous else np.ascontiguousarray(array))

    def dot(self, rows: np.ndarray, x: np.ndarray, z: np.ndarray) -> None:
        """z = A[rows] x, x (features, columns)"""
        kernels.picked_dense_dot(self.entries, rows, x, z)

    def tdot(self, rows: np.ndarray, r: np.ndarray, g: np.ndarray) -> None:
        """g += A[rows]' r"""
        kernels.picked_dense_tdot(self.entries, rows, r, g)

    def walk(self, scalar: Any) -> Any:
        """The kernel that makes many steps."""
        return kernels.dense_walk(scalar)


class PickedRows:
    """Those of a matrix in compressed rows."""

    def __init__(self, *parts: np.ndarray):
        self.entries = tuple(map(writeable, parts))

    def dot(self, rows: np.ndarray, x: np.ndarray, z: np.ndarray) -> None:
        kernels.picked_rows_dot(*self.entries, rows, x, z)

    def tdot(self, rows: np.ndarray, r: np.ndarray, g: np.ndarray) -> None:
        kernels.picked_rows_tdot(*self.entries, rows, r, g)

    def walk(self, scalar: Any) -> Any:
        return kernels.rows_walk(scalar)


Picked = PickedDense | PickedRows


def picked(source: Source) -> Picked:
    """The rows of a source; what is not stored by rows is copied once, and what is not in memory is refused."""
    if isinstance(source, Dense):
        return PickedDense(source.array)
    if isinstance(source, CompressedRows):
        return PickedRows(*source.parts)
    if isinstance(source, CompressedColumns):
        rows = source.whole.to_sparse()
        return PickedRows(rows.indptr, rows.indices, rows.data)
    raise TypeError(
        f"Minibatch needs the rows of A in memory, as an array or a SciPy matrix. Got {type(source).__name__} instead: "
        "use the loss without Minibatch, and an estimator without batch_size and partial_fit."
    )
