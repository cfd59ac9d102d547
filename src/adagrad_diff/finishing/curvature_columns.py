"""The columns of A that a step is about, in double precision; with an intercept they are centered, and ones are the last of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .. import kernels
from ..common.threads import over_rows, thread_count
from ..data import Block, Source, as_source
from ..data.stored import CompressedColumns, CompressedRows

FEW_PRODUCTS = 200  # columns of an operator that are simply asked for
COPIED_COLUMNS = 1 << 25  # entries of a copy of some columns; larger ones are gone through block by block


class Columns:
    """All of them: products z = A w + c and A' r, where x = (w, c + center w) if there is an intercept c."""

    density = 1.0  # the part of entries that are stored

    def __init__(self, A: Source, weight: np.ndarray, intercept: bool):
        self.A, self.weight, self.intercept = A, weight, intercept
        self.samples, self.features = A.shape
        self.size = self.features + intercept

    @cached_property
    def center(self) -> np.ndarray:
        mean = np.zeros(self.features)
        if self.intercept and not self.A.opaque:
            self._tdot(self.weight, mean)
            mean /= self.weight.sum()  # of numbers in single precision that is not quite one
        return mean

    @cached_property
    def square(self) -> np.ndarray:
        """sum_j weight_j a_ji^2 of the columns as they are, and 1 for the intercept."""
        if self.A.opaque:
            sizes = self.A.column_sizes(self.weight)
            return np.append(sizes**2, np.ones(int(self.intercept)))
        return np.append(self._square(self.weight), np.ones(int(self.intercept)))

    @cached_property
    def spread(self) -> np.ndarray:
        """The same of the centered columns."""
        if not self.intercept:
            return self.square
        rest = self.square[:-1] - self.weight.sum() * self.center**2
        return np.append(np.where(rest > 4e-15 * self.square[:-1], rest, 0.0), 1.0)

    def _square(self, weight: np.ndarray) -> np.ndarray:
        total: np.ndarray = self.A.fold(_square, weight)
        return total

    def dot(self, x: np.ndarray) -> np.ndarray:
        """z of all samples, for x of shape (size,) or (size, classes)."""
        z = np.empty((self.samples, *x.shape[1:]))
        self._dot(np.ascontiguousarray(x[: self.features]), z)
        if self.intercept:
            z += x[-1] - self.center @ x[:-1]
        return z

    def tdot(self, r: np.ndarray) -> np.ndarray:
        """A' r over all columns."""
        g = np.empty((self.size, *r.shape[1:]))
        self._tdot(r, g[: self.features])
        if self.intercept:
            g[-1] = total = r.sum(axis=0)
            g[:-1] -= np.multiply.outer(self.center, total)
        return g

    def _dot(self, x: np.ndarray, z: np.ndarray) -> None:
        self.A.dot(x, z)

    def _tdot(self, r: np.ndarray, g: np.ndarray) -> None:
        self.A.tdot(r, g)

    def diagonal(self, h: np.ndarray) -> np.ndarray:
        """sum_j h_j (a_ji - center_i)^2, and the sum of h; of an operator, a guess."""
        if self.A.opaque:
            return self.square * (h.sum() / self.weight.sum())
        total = self._square(h)
        if self.intercept:
            shifted = np.empty(self.features)
            self._tdot(h, shifted)
            total += self.center * (self.center * h.sum() - 2.0 * shifted)
            total = np.append(np.maximum(total, 0.0), h.sum())
        return total

    def take(self, index: np.ndarray) -> Chosen:
        """Some of the columns, `index` sorted."""
        entries = self.samples * index.size
        if self.A.opaque or entries > COPIED_COLUMNS:
            return Chosen(self, index)
        return Copied(self, index)


class Chosen:
    """Some of the columns, by products with all of them: for operators, and for what is too large to be copied."""

    def __init__(self, columns: Columns, index: np.ndarray):
        self.columns, self.index = columns, index

    def dot(self, v: np.ndarray) -> np.ndarray:
        x = np.zeros((self.columns.size, *v.shape[1:]))
        x[self.index] = v
        return self.columns.dot(x)

    def tdot(self, r: np.ndarray) -> np.ndarray:
        return self.columns.tdot(r)[self.index]

    def gram(self, h: np.ndarray) -> np.ndarray:
        """A' diag(h) A"""
        columns, features = self.columns, self.index[self.index < self.columns.features]
        total: np.ndarray = columns.A.fold(_gram, features, columns.center, columns.intercept, h)
        return total


class Copied(Chosen):
    """Some of the columns as a dense array."""

    def __init__(self, columns: Columns, index: np.ndarray):
        super().__init__(columns, index)
        features = index[index < columns.features]
        parts = columns.A.fold(_chosen, features, columns.center, columns.intercept, merge=lambda one, other: one + other)
        self.array = parts[0] if len(parts) == 1 else np.concatenate(parts)

    def dot(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(self.array @ v)

    def tdot(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(self.array.T @ r)

    def gram(self, h: np.ndarray) -> np.ndarray:
        half = self.array * np.sqrt(h)[:, None]
        return np.asarray(half.T @ half)


def _dense_part(block: Block, features: np.ndarray, center: np.ndarray, intercept: bool) -> np.ndarray:
    array, whole = _entries(block), features.size == block.shape[1]
    some = array if whole else array[:, features]
    some = some if isinstance(some, np.ndarray) else some.toarray()
    if not intercept:
        return some.astype(np.float64, copy=False)
    part = np.ones((some.shape[0], features.size + 1))
    np.subtract(some, center[features], out=part[:, :-1])
    return part


def _entries(block: Block) -> Any:
    """Dense or sparse, as they are."""
    return block.to_dense() if hasattr(block, "array") else block.to_sparse()


def _chosen(block: Block, features: np.ndarray, center: np.ndarray, intercept: bool) -> list[np.ndarray]:
    part = _dense_part(block, features, center, intercept)
    return [part if block.threaded or part.base is None else part.copy()]  # the next block may come in the same memory


def _gram(block: Block, features: np.ndarray, center: np.ndarray, intercept: bool, h: np.ndarray) -> np.ndarray:
    half = _dense_part(block, features, center, intercept) * np.sqrt(block.part(h))[:, None]
    return np.asarray(half.T @ half)


def _square(block: Block, weight: np.ndarray) -> np.ndarray:
    if isinstance(entries := _entries(block), np.ndarray):
        return np.asarray(block.part(weight) @ np.square(entries, dtype=np.float64))
    return np.asarray(entries.astype(np.float64).power(2).T @ block.part(weight))


class SparseColumns(Columns):
    """Of a SciPy matrix: a copy in compressed columns is made once."""

    def __init__(self, A: Source, weight: np.ndarray, intercept: bool):
        super().__init__(A, weight, intercept)
        self.by_columns, self.by_rows = _compressed(A), None
        self.density = self.by_columns.data.size / (self.samples * self.features)

    def _square(self, weight: np.ndarray) -> np.ndarray:
        total = np.zeros(self.features)
        kernels.add_square_tdot(self.by_columns.indptr, self.by_columns.indices, self.by_columns.data, weight, total)
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
        kernels.add_sparse_gram(rows.indptr, rows.indices, rows.data, h, H[:k, :k])
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
        over_rows(lambda _, lo, hi: kernels.add_rows_dot(*parts, x, lo, hi, z[lo:hi]), lines, threads)


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
    if A.opaque and A.shape[1] <= FEW_PRODUCTS and A.shape[0] * A.shape[1] <= COPIED_COLUMNS:
        A = as_source(A.to_dense())  # fewer products than steps would take
    sparse = isinstance(A, CompressedRows | CompressedColumns)
    return (SparseColumns if sparse else Columns)(A, weight, intercept)
