"""Columns of A in double precision: products, Gram matrices and their diagonals.

With an intercept, columns are centered and a column of ones comes last. Then x = (w, c + center w)
stands for the coefficients w and the intercept c.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from .._threads import over_rows, thread_count
from ..linalg import Block, Source
from ..linalg.compiling import is_small
from ..linalg.compressed import add_rows_dot
from ..linalg.source import joined
from ..linalg.stored import CompressedColumns, CompressedRows, Dense
from . import kernels
from .linear_algebra import BLOCK_ENTRIES, weighted_gram

MAX_COPY = 1 << 25  # entries of a copy of selected columns
MAX_WHOLE_COPY = 1 << 20  # entries of a dense A that is copied and centered as a whole
MAX_OPERATOR_COLUMNS = 200  # of an operator whose matrix is computed


class Columns(ABC):
    """Selected columns of A."""

    size: int
    density = 1.0  # share of the entries that are stored

    @abstractmethod
    def dot(self, x: np.ndarray) -> np.ndarray:
        """Return A x for x of shape (size,) or (size, classes)."""

    @abstractmethod
    def tdot(self, r: np.ndarray) -> np.ndarray:
        """Return A' r."""

    @abstractmethod
    def gram(self, h: np.ndarray) -> np.ndarray:
        """Return A' diag(h) A."""

    @abstractmethod
    def squares(self, h: np.ndarray) -> np.ndarray:
        """Return the diagonal of the Gram matrix. It is estimated for an operator."""

    @abstractmethod
    def take(self, index: np.ndarray) -> Columns:
        """Return some of the columns, in increasing order and with that of the intercept."""


class ArrayColumns(Columns):
    """A dense array with the columns."""

    def __init__(self, array: np.ndarray):
        self.array, self.size = array, array.shape[1]

    def dot(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.array @ x)

    def tdot(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(self.array.T @ r)

    def gram(self, h: np.ndarray) -> np.ndarray:
        return weighted_gram(self.array, h)

    def squares(self, h: np.ndarray) -> np.ndarray:
        return np.asarray(h @ np.square(self.array))

    def take(self, index: np.ndarray) -> Columns:
        return self if index.size == self.size else ArrayColumns(self.array[:, index])


class CenteredColumns(Columns):
    """Columns that are centered algebraically, without a copy."""

    def __init__(self, center: np.ndarray, intercept: bool):
        self.center, self.intercept, self.size = center, intercept, center.size + intercept

    @abstractmethod
    def _dot(self, x: np.ndarray) -> np.ndarray:
        """Return the product with the columns as they are, without the intercept."""

    @abstractmethod
    def _tdot(self, r: np.ndarray) -> np.ndarray:
        """Return the product with the transpose of the same."""

    @abstractmethod
    def _squares(self, h: np.ndarray) -> np.ndarray:
        """Return the weighted sums of squares of the same."""

    def dot(self, x: np.ndarray) -> np.ndarray:
        z = self._dot(np.ascontiguousarray(x[: self.center.size]))
        return z + (x[-1] - self.center @ x[:-1]) if self.intercept else z

    def tdot(self, r: np.ndarray) -> np.ndarray:
        g = self._tdot(r)
        return self.centered(g, r.sum(axis=0)) if self.intercept else g

    def centered(self, g: np.ndarray, total: Any) -> np.ndarray:
        """Return the product of centered columns and r, given that of the others and sum(r)."""
        return np.concatenate([g - np.multiply.outer(self.center, total), [total]])

    def squares(self, h: np.ndarray) -> np.ndarray:
        total = self._squares(h)
        if not self.intercept:
            return total
        total += self.center * (self.center * h.sum() - 2.0 * self._tdot(h))
        return np.append(np.maximum(total, 0.0), h.sum())


class SparseColumns(CenteredColumns):
    """A sparse matrix, in compressed columns and rows."""

    def __init__(self, matrix: Any, center: np.ndarray, intercept: bool):
        super().__init__(center, intercept)
        self.by_columns = matrix
        self.density = matrix.data.size / max(matrix.shape[0] * matrix.shape[1], 1)

    @cached_property
    def by_rows(self) -> Any:
        return self.by_columns.tocsr()

    def _dot(self, x: np.ndarray) -> np.ndarray:
        return _compressed_dot(self.by_rows, x)

    def _tdot(self, r: np.ndarray) -> np.ndarray:
        return _compressed_dot(self.by_columns, r)

    def _squares(self, h: np.ndarray) -> np.ndarray:
        return _compressed_dot(self._squared, h)

    @cached_property
    def _squared(self) -> Any:
        squared = self.by_columns.copy()
        squared.data **= 2
        return squared

    def gram(self, h: np.ndarray) -> np.ndarray:
        k, rows, m = self.center.size, self.by_rows, self.center
        H = np.zeros((self.size, self.size))
        kernels.add_sparse_gram(rows.indptr, rows.indices, rows.data, h, H[:k, :k])
        lower = np.tril(H[:k, :k], -1)
        H[:k, :k] += lower.T
        if self.intercept:
            q, total = self._tdot(h), float(h.sum())
            H[:k, :k] -= np.outer(m, q) + np.outer(q - total * m, m)
            H[-1, :k] = H[:k, -1] = q - total * m
            H[-1, -1] = total
        return H

    def take(self, index: np.ndarray) -> Columns:
        if index.size == self.size:
            return self
        features = index[index < self.center.size]
        return SparseColumns(self.by_columns[:, features], self.center[features], self.intercept)


class SourceColumns(CenteredColumns):
    """Columns of a source, by products with all of them: for large or remote data and operators."""

    def __init__(
        self,
        A: Source,
        center: np.ndarray,
        intercept: bool,
        square: np.ndarray,
        features: np.ndarray | None = None,
    ):
        super().__init__(center if features is None else center[features], intercept)
        self.A, self.whole_center, self.square = A, center, square
        self.features = np.arange(center.size) if features is None else features

    def _dot(self, x: np.ndarray) -> np.ndarray:
        whole = np.zeros((self.A.shape[1], *x.shape[1:]))
        whole[self.features] = x
        self.A.dot(whole, z := np.empty((self.A.shape[0], *x.shape[1:])))
        return z

    def _tdot(self, r: np.ndarray) -> np.ndarray:
        self.A.tdot(r, g := np.empty((self.A.shape[1], *r.shape[1:])))
        return g[self.features]

    def _squares(self, h: np.ndarray) -> np.ndarray:
        if self.A.opaque:
            return np.asarray(self.square[self.features] * h.sum())
        total: np.ndarray = self.A.fold(_block_squares, self.features, along=(h,))
        return total

    def gram(self, h: np.ndarray) -> np.ndarray:
        call = self.features, self.center, self.intercept
        total: np.ndarray = self.A.fold(block_gram, *call, along=(h,))
        return total

    def subset(self, index: np.ndarray) -> SourceColumns:
        """Return some of the columns without a copy."""
        features = index[index < self.whole_center.size]
        return SourceColumns(self.A, self.whole_center, self.intercept, self.square, features)

    def take(self, index: np.ndarray) -> Columns:
        some = self.subset(index)
        if self.A.opaque or self.A.shape[0] * index.size > MAX_COPY:
            return some
        call = some.features, some.center, self.intercept
        return ArrayColumns(np.concatenate(self.A.fold(_block_columns, *call, merge=joined)))


def columns_of(A: Source, center: np.ndarray, square: np.ndarray, intercept: bool) -> Columns:
    """Return all columns of a source, of which means and mean squares are given."""
    size = A.shape[0] * A.shape[1]
    sparse, dense = isinstance(A, CompressedRows | CompressedColumns), isinstance(A, Dense)
    known = A.opaque and A.shape[1] <= MAX_OPERATOR_COLUMNS and size <= MAX_COPY
    if known or (sparse and is_small(size)) or (dense and size <= MAX_WHOLE_COPY):
        return ArrayColumns(_columns(A.to_dense(), center, intercept))
    if sparse:
        return SparseColumns(_compressed(A), center, intercept)
    return SourceColumns(A, center, intercept, square)


def _columns(entries: np.ndarray, center: np.ndarray, intercept: bool) -> np.ndarray:
    """Return dense columns in double precision, centered and followed by ones with an intercept."""
    if not intercept:
        return entries.astype(np.float64, copy=False)
    columns = np.ones((len(entries), center.size + 1))
    np.subtract(entries, center, out=columns[:, :-1])
    return columns


def _compressed_dot(matrix: Any, x: np.ndarray) -> np.ndarray:
    """Return matrix @ x for compressed lines, which threads share."""
    parts, lines = (matrix.indptr, matrix.indices, matrix.data), matrix.indptr.size - 1
    z = np.zeros((lines, *x.shape[1:]))
    threads = min(thread_count(matrix.data.size * x[:1].size), lines)
    if threads <= 1:
        add_rows_dot(*parts, x, 0, lines, z)
    else:
        over_rows(lambda _, lo, hi: add_rows_dot(*parts, x, lo, hi, z[lo:hi]), lines, threads)
    return z


def _compressed(A: Any) -> Any:
    """Return A in SciPy's CSC format and double precision."""
    from scipy import sparse

    indptr, indices, data = A.parts
    if isinstance(A, CompressedColumns):
        matrix = sparse.csc_array((data, indices, indptr), shape=A.shape)
    else:
        matrix = sparse.csr_array((data, indices, indptr), shape=A.shape).tocsc()
    matrix = matrix.astype(np.float64, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


# ------------------------------------------------------------ functions of one block


def block_gram(
    block: Block, h: np.ndarray, features: np.ndarray, center: np.ndarray, intercept: bool
) -> np.ndarray:
    """Return the Gram matrix of centered columns of a block, some rows at a time."""
    size = features.size + intercept
    total, rows = np.zeros((size, size)), max(1, BLOCK_ENTRIES // max(size, 1))
    for lo in range(0, block.shape[0], rows):
        hi = min(lo + rows, block.shape[0])
        part = _columns(_entries(block.cut(lo, hi), features), center, intercept)
        total += weighted_gram(part, h[lo:hi])
    return total


def _entries(block: Block, features: np.ndarray) -> np.ndarray:
    whole = features.size == block.shape[1]
    if hasattr(block, "array"):
        return block.to_dense() if whole else block.to_dense()[:, features]
    return np.asarray((block.to_sparse() if whole else block.to_sparse()[:, features]).toarray())


def _block_columns(
    block: Block, features: np.ndarray, center: np.ndarray, intercept: bool
) -> list[np.ndarray]:
    part = _columns(_entries(block, features), center, intercept)
    return [part if part.base is None else part.copy()]  # the next block may use the same memory


def _block_squares(block: Block, h: np.ndarray, features: np.ndarray) -> np.ndarray:
    block.applied(np.square).tdot(h, total := np.empty(block.shape[1]))
    return np.asarray(total[features])
