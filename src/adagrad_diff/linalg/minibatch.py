"""The rows of A that minibatches consist of, and products with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .block import writeable
from .compiling import plain
from .inner_loops import dense_inner_loop, sparse_inner_loop
from .source import Source
from .stored import CompressedColumns, CompressedRows, Dense


class DenseRows:
    """Rows of an array."""

    def __init__(self, array: np.ndarray):
        self.entries = writeable(np.ascontiguousarray(array))

    def dot(self, rows: np.ndarray, x: np.ndarray, z: np.ndarray) -> None:
        """z = A[rows] x, x (features, columns)"""
        np.matmul(self.entries[rows], x, out=z)

    def tdot(self, rows: np.ndarray, r: np.ndarray, g: np.ndarray) -> None:
        """g += A[rows]' r"""
        g += self.entries[rows].T @ r

    def inner_loop(self, scalar: Any) -> Any:
        """Return the kernel that makes many steps."""
        return dense_inner_loop(scalar)


class SparseRows:
    """Rows of a matrix in CSR."""

    def __init__(self, *parts: np.ndarray):
        self.entries = tuple(map(writeable, parts))

    def dot(self, rows: np.ndarray, x: np.ndarray, z: np.ndarray) -> None:
        _rows_dot(*self.entries, rows, x, z)

    def tdot(self, rows: np.ndarray, r: np.ndarray, g: np.ndarray) -> None:
        _rows_tdot(*self.entries, rows, r, g)

    def inner_loop(self, scalar: Any) -> Any:
        return sparse_inner_loop(scalar)


MinibatchRows = DenseRows | SparseRows


def minibatch_rows(source: Source) -> MinibatchRows:
    """Return the rows of a source in memory, or raise. Data that are not stored by rows are copied."""
    if isinstance(source, Dense):
        return DenseRows(source.array)
    if isinstance(source, CompressedRows):
        return SparseRows(*source.parts)
    if isinstance(source, CompressedColumns):
        rows = source.whole.to_sparse()
        return SparseRows(rows.indptr, rows.indices, rows.data)
    raise TypeError(
        "Minibatch needs the rows of A in memory, as an array or a SciPy matrix. Got "
        f"{type(source).__name__} instead: use the loss without Minibatch, and an estimator without "
        "batch_size and partial_fit."
    )


@plain
def _rows_dot(indptr: Any, indices: Any, data: Any, rows: Any, x: Any, z: Any) -> None:
    """z = A[rows] @ x"""
    for t in range(rows.size):
        j = rows[t]
        row = z[t]
        row[:] = 0
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            xi, a = x[np.uint64(indices[p])], data[p]
            for k in range(row.size):
                row[k] += a * xi[k]


@plain
def _rows_tdot(indptr: Any, indices: Any, data: Any, rows: Any, r: Any, g: Any) -> None:
    """g += A[rows].T @ r"""
    for t in range(rows.size):
        j = rows[t]
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            gi, a = g[np.uint64(indices[p])], data[p]
            for k in range(gi.size):
                gi[k] += a * r[t, k]
