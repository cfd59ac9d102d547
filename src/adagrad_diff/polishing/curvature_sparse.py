"""The columns of a sparse matrix, and which kind of columns suits a source."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._threads import over_rows, thread_count
from ..linalg import Source, as_source, kernels
from ..linalg.stored import CompressedColumns, CompressedRows
from . import kernels as own
from .curvature_columns import COPIED_COLUMNS, Chosen, Columns

FEW_PRODUCTS = 200  # columns of an operator that are simply asked for


class SparseColumns(Columns):
    """Of a SciPy matrix: a copy in compressed columns is made once."""

    def __init__(self, A: Source, weight: np.ndarray, intercept: bool):
        super().__init__(A, weight, intercept)
        self.by_columns, self.by_rows = _compressed(A), None
        self.density = self.by_columns.data.size / (self.samples * self.features)

    def _square(self, weight: np.ndarray) -> np.ndarray:
        total = np.zeros(self.features)
        own.add_square_tdot(
            self.by_columns.indptr, self.by_columns.indices, self.by_columns.data, weight, total
        )
        return total

    def _dot(self, x: np.ndarray, z: np.ndarray) -> None:
        if x.ndim == 1 and np.count_nonzero(x) < 0.2 * x.size:
            z[...] = 0
            c = self.by_columns
            kernels.add_rows_tdot(c.indptr, c.indices, c.data, x, 0, x.size, z)
            return
        if self.by_rows is None:
            self.by_rows = self.by_columns.tocsr()
        _lines(self.by_rows, x, z)

    def _tdot(self, r: np.ndarray, g: np.ndarray) -> None:
        _lines(self.by_columns, r, g)

    def take(self, index: np.ndarray) -> Chosen:
        return self if index.size == self.size else SparseChosen(self, index)  # type: ignore[return-value]

    def gram(self, h: np.ndarray) -> np.ndarray:
        return SparseChosen(self, np.arange(self.size)).gram(h)


class SparseChosen(Chosen):
    """Some of the columns of a sparse matrix, as one."""

    columns: SparseColumns

    def __init__(self, columns: SparseColumns, index: np.ndarray):
        super().__init__(columns, index)
        features = index[index < columns.features]
        self.by_columns, self.center = columns.by_columns[:, features], columns.center[features]
        self.by_rows = self.by_columns.tocsr()

    def dot(self, v: np.ndarray) -> np.ndarray:
        v = np.ascontiguousarray(v)
        z = np.empty((self.columns.samples, *v.shape[1:]))
        _lines(self.by_rows, v[: self.center.size], z)
        if self.columns.intercept:
            z += v[-1] - self.center @ v[:-1]
        return z

    def tdot(self, r: np.ndarray) -> np.ndarray:
        g = np.empty((self.index.size, *r.shape[1:]))
        _lines(self.by_columns, r, g[: self.center.size])
        if self.columns.intercept:
            g[-1] = total = r.sum(axis=0)
            g[:-1] -= np.multiply.outer(self.center, total)
        return g

    def gram(self, h: np.ndarray) -> np.ndarray:
        k, rows = self.center.size, self.by_rows
        H = np.zeros((self.index.size, self.index.size))
        own.add_sparse_gram(rows.indptr, rows.indices, rows.data, h, H[:k, :k])
        lower = np.tril(H[:k, :k], -1)
        H[:k, :k] += lower.T
        if self.columns.intercept:
            q, s, m = self.by_columns.T @ h, float(h.sum()), self.center
            H[:k, :k] -= np.outer(m, q) + np.outer(q - s * m, m)
            H[-1, :k] = H[:k, -1] = q - s * m
            H[-1, -1] = s
        return H


def _lines(matrix: Any, x: np.ndarray, z: np.ndarray) -> None:
    """z = matrix @ x for one in compressed lines, of which threads share the lines."""
    z[...] = 0
    parts, lines = (matrix.indptr, matrix.indices, matrix.data), matrix.indptr.size - 1
    threads = min(thread_count(matrix.data.size * x[:1].size), lines)
    if threads <= 1:
        kernels.add_rows_dot(*parts, x, 0, lines, z)
    else:
        over_rows(
            lambda _, lo, hi: kernels.add_rows_dot(*parts, x, lo, hi, z[lo:hi]), lines, threads
        )


def _compressed(A: Any) -> Any:
    """A in SciPy's CSC, in double precision."""
    from scipy import sparse

    indptr, indices, data = A.parts
    if isinstance(A, CompressedColumns):
        matrix = sparse.csc_array((data, indices, indptr), shape=A.shape)
    else:
        matrix = sparse.csr_array((data, indices, indptr), shape=A.shape).tocsc()
    if matrix.data.dtype != np.float64:
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def columns_of(A: Source, weight: np.ndarray, intercept: bool) -> Columns:
    """What suits a source."""
    sparse, size = isinstance(A, CompressedRows | CompressedColumns), A.shape[0] * A.shape[1]
    few = A.opaque and A.shape[1] <= FEW_PRODUCTS and size <= COPIED_COLUMNS
    if few or (sparse and kernels.is_small(size)):  # fewer products than steps would take, or small
        A, sparse = as_source(A.to_dense()), False
    return (SparseColumns if sparse else Columns)(A, weight, intercept)
