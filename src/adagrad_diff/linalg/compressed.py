"""Rows of a sparse matrix, in SciPy's CSR or CSC, and products with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from .block import CACHE_BYTES, Block, Samples, aligned, writeable
from .compiling import is_small, plain


class CompressedBlock(Block):
    """Pointers, indices and data. The pointers of a part of a matrix do not begin with zero."""

    def __init__(
        self, indptr: Any, indices: Any, data: Any, shape: tuple[int, int], first: int = 0
    ):
        indptr, indices, data = map(aligned, (indptr, indices, data))
        self.parts = indptr, indices, data
        self._entries = writeable(indptr), writeable(indices), writeable(data)  # for the kernels
        self.shape, self.dtype, self.first = shape, data.dtype, first
        self.size = int(indptr[-1] - indptr[0])
        self.small = is_small(self.size)  # then SciPy multiplies

    def __reduce__(self) -> Any:
        """Send it to another process without the views for the kernels and the rows of other parts."""
        return type(self), (*self._own_parts(), self.shape, self.first), {"threaded": self.threaded}

    def _own_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        indptr, indices, data = self.parts
        lo, hi = indptr[0], indptr[-1]
        return indptr - lo, indices[lo:hi], data[lo:hi]

    def _add(self, kernel: Any, x: np.ndarray, lo: int, hi: int, out: np.ndarray) -> None:
        """Call a kernel. It is twice as fast on a vector as on a single column."""
        if out.ndim == 2 and out.shape[1] == 1:
            x, out = x.reshape(-1), out.reshape(-1)
        kernel(*self._entries, x, lo, hi, out)

    def applied(self, function: Callable[[np.ndarray], np.ndarray]) -> Block:
        indptr, indices, data = self._own_parts()
        return type(self)(indptr, indices, function(data), self.shape, self.first)

    def to_dense(self) -> np.ndarray:
        dense: np.ndarray = self.to_sparse().toarray()
        return dense

    def largest(self) -> float:
        return float(np.abs(self._own_parts()[2]).max(initial=0.0))

    def diagonal(self) -> np.ndarray:
        diagonal: np.ndarray = self.to_sparse().diagonal(self.first)
        return diagonal

    def skew(self) -> float:
        Q = self.to_sparse().copy()  # SciPy sorts what it subtracts
        return float(abs(Q - Q.T).max())


class RowsBlock(CompressedBlock):
    """CSR."""

    def own_kernels(self, samples: Samples) -> bool:
        return not self.small

    @cached_property
    def _rows(self) -> Any:
        return self.to_sparse()

    @cached_property
    def _columns(self) -> Any:
        return self._rows.T

    def dot(self, x: np.ndarray, z: np.ndarray, lo: int = 0, hi: int | None = None) -> None:
        whole, hi = lo == 0 and hi in (None, self.shape[0]), self.shape[0] if hi is None else hi
        if self.small:
            z[...] = (self._rows if whole else self._rows[lo:hi]) @ x
        else:
            z[...] = 0
            self._add(add_rows_dot, x, lo, hi, z)

    def tdot(
        self, r: np.ndarray, g: np.ndarray, lo: int = 0, hi: int | None = None, add: bool = False
    ) -> None:
        whole, hi = lo == 0 and hi in (None, self.shape[0]), self.shape[0] if hi is None else hi
        if not add:
            g[...] = 0
        if self.small:
            g += (self._columns if whole else self._rows[lo:hi].T) @ r
        else:
            self._add(add_rows_tdot, r, lo, hi, g)

    def cut(self, lo: int, hi: int) -> RowsBlock:
        indptr, indices, data = self.parts
        return RowsBlock(
            indptr[lo : hi + 1], indices, data, (hi - lo, self.shape[1]), self.first + lo
        )

    def rows(self, index: np.ndarray) -> RowsBlock:
        rows = self.to_sparse()[index].astype(np.float64)
        return RowsBlock(rows.indptr, rows.indices, rows.data, rows.shape)

    def to_sparse(self) -> Any:
        from scipy import sparse

        indptr, indices, data = self._own_parts()
        return sparse.csr_array((data, indices, indptr), shape=self.shape)


class ColumnsBlock(CompressedBlock):
    """CSC: the CSR of A', with the two products exchanged. It is one block, whatever its size."""

    divisible = False

    def dot(self, x: np.ndarray, z: np.ndarray, lo: int = 0, hi: int | None = None) -> None:
        if self.small:
            z[...] = self._columns @ x
        else:
            z[...] = 0
            self._add(add_rows_tdot, x, 0, self.shape[1], z)

    def tdot(
        self, r: np.ndarray, g: np.ndarray, lo: int = 0, hi: int | None = None, add: bool = False
    ) -> None:
        if not add:
            g[...] = 0
        if self.small:
            g += self._columns.T @ r
        else:
            self._add(add_rows_dot, r, 0, self.shape[1], g)

    def cut(self, lo: int, hi: int) -> ColumnsBlock:
        return self

    def moments(self, weight: np.ndarray) -> np.ndarray:
        if len(parts := self._columns_in_cache()) == 1:
            return super().moments(weight)
        return np.hstack([part.moments(weight) for part in parts])

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        if len(parts := self._columns_in_cache()) == 1:
            return super().column_sizes(weight)
        return np.concatenate([part.column_sizes(weight) for part in parts])

    def _columns_in_cache(self) -> list[ColumnsBlock]:
        """Return ranges of columns, so that squares and absolute values need little memory."""
        (indptr, indices, data), (samples, features) = self.parts, self.shape
        step = max(1, features * CACHE_BYTES // max(1, self.size * self.dtype.itemsize))
        ranges = [(lo, min(lo + step, features)) for lo in range(0, features, step)]
        return [
            ColumnsBlock(indptr[lo : hi + 1], indices, data, (samples, hi - lo), self.first)
            for lo, hi in ranges
        ]

    def rows(self, index: np.ndarray) -> RowsBlock:
        rows = self._columns[index].tocsr().astype(np.float64)
        return RowsBlock(rows.indptr, rows.indices, rows.data, rows.shape)

    def to_sparse(self) -> Any:
        return self._columns.tocsr()

    @cached_property
    def _columns(self) -> Any:
        from scipy import sparse

        indptr, indices, data = self._own_parts()
        return sparse.csc_array((data, indices, indptr), shape=self.shape)


# ------------------------------------------------------------------ kernels


@plain
def add_rows_dot(indptr: Any, indices: Any, data: Any, x: Any, lo: Any, hi: Any, z: Any) -> None:
    """z += A[lo:hi] @ x"""
    for j in range(lo, hi):
        start, stop = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
        if x.ndim == 1:
            total = z[j - lo]
            for p in range(start, stop):
                total += data[p] * x[np.uint64(indices[p])]
            z[j - lo] = total
        elif x.shape[1] == 3:  # as eta="auto" has: 1.4 to 2.4 times as fast in registers
            row = z[j - lo]
            z0, z1, z2 = row[0], row[1], row[2]
            for p in range(start, stop):
                xi, a = x[np.uint64(indices[p])], data[p]
                z0 += a * xi[0]
                z1 += a * xi[1]
                z2 += a * xi[2]
            row[0], row[1], row[2] = z0, z1, z2
        else:
            row, four = z[j - lo], np.uint64(4)
            while start + four <= stop:  # four at a time saves a third: z is read and written less
                p1, p2, p3 = start + np.uint64(1), start + np.uint64(2), start + np.uint64(3)
                x0, x1 = x[np.uint64(indices[start])], x[np.uint64(indices[p1])]
                x2, x3 = x[np.uint64(indices[p2])], x[np.uint64(indices[p3])]
                a0, a1, a2, a3 = data[start], data[p1], data[p2], data[p3]
                for k in range(row.size):
                    row[k] += (a0 * x0[k] + a1 * x1[k]) + (a2 * x2[k] + a3 * x3[k])
                start += four
            for p in range(start, stop):
                i = np.uint64(indices[p])
                for k in range(row.size):
                    row[k] += data[p] * x[i, k]


@plain
def add_rows_tdot(indptr: Any, indices: Any, data: Any, r: Any, lo: Any, hi: Any, g: Any) -> None:
    """g += A[lo:hi].T @ r"""
    for j in range(lo, hi):
        start, stop = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
        if r.ndim == 1:
            residual = r[j - lo]
            for p in range(start, stop):
                g[np.uint64(indices[p])] += residual * data[p]
        elif r.shape[1] == 3:
            r0, r1, r2 = r[j - lo, 0], r[j - lo, 1], r[j - lo, 2]
            for p in range(start, stop):
                gi, a = g[np.uint64(indices[p])], data[p]
                gi[0] += r0 * a
                gi[1] += r1 * a
                gi[2] += r2 * a
        else:
            for p in range(start, stop):
                i = np.uint64(indices[p])
                for k in range(r.shape[1]):
                    g[i, k] += r[j - lo, k] * data[p]
