"""Rows of a sparse matrix: SciPy's CSR, and its CSC."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from . import kernels
from .block import COPIED_ENTRIES, Block, aligned, writeable
from .kernels import is_small
from .samples import Samples


def _thin(array: np.ndarray) -> np.ndarray:
    """A single column as a vector: the kernels are twice as fast on that."""
    return array.reshape(-1) if array.ndim == 2 and array.shape[1] == 1 else array


class CompressedBlock(Block):
    """What the two formats share: pointers, indices and data. Pointers need not begin with zero: of a part, they do not."""

    def __init__(
        self, indptr: Any, indices: Any, data: Any, shape: tuple[int, int], first: int = 0
    ):
        indptr, indices, data = map(aligned, (indptr, indices, data))
        self.parts = indptr, indices, data
        self._entries = writeable(indptr), writeable(indices), writeable(data)  # what kernels see
        self.shape, self.dtype, self.first = shape, data.dtype, first
        self.size = int(indptr[-1] - indptr[0])
        self.small = is_small(self.size)  # then SciPy multiplies

    def __reduce__(self) -> Any:
        """To another process: without what kernels see, which is made again, and what other rows have in the same memory."""
        return type(self), (*self._own_parts(), self.shape, self.first), {"threaded": self.threaded}

    def _own_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Without what other rows have in the same memory."""
        indptr, indices, data = self.parts
        lo, hi = indptr[0], indptr[-1]
        return indptr - lo, indices[lo:hi], data[lo:hi]

    def applied(self, function: Callable[[np.ndarray], np.ndarray]) -> Block:
        indptr, indices, data = self._own_parts()
        return type(self)(indptr, indices, function(data), self.shape, self.first)

    def to_dense(self) -> np.ndarray:
        dense: np.ndarray = self.to_sparse().toarray()
        return dense

    def largest(self) -> float:
        data = self._own_parts()[2]
        return max(float(data.max()), -float(data.min())) if data.size else 0.0

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
        if self.small:
            whole = lo == 0 and hi in (None, self.shape[0])
            z[...] = (self._rows if whole else self._rows[lo:hi]) @ x
            return
        z[...] = 0
        kernels.add_rows_dot(
            *self._entries, _thin(x), lo, self.shape[0] if hi is None else hi, _thin(z)
        )

    def tdot(
        self, r: np.ndarray, g: np.ndarray, lo: int = 0, hi: int | None = None, add: bool = False
    ) -> None:
        if not add:
            g[...] = 0
        if self.small:
            whole = lo == 0 and hi in (None, self.shape[0])
            g += (self._columns if whole else self._rows[lo:hi].T) @ r
            return
        kernels.add_rows_tdot(
            *self._entries, _thin(r), lo, self.shape[0] if hi is None else hi, _thin(g)
        )

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
    """CSC: the compressed rows of A', with the two products exchanged. It is one block, whatever its size."""

    divisible = False

    def dot(self, x: np.ndarray, z: np.ndarray, lo: int = 0, hi: int | None = None) -> None:
        if self.small:
            z[...] = self._columns @ x
            return
        z[...] = 0
        kernels.add_rows_tdot(*self._entries, _thin(x), 0, self.shape[1], _thin(z))

    def tdot(
        self, r: np.ndarray, g: np.ndarray, lo: int = 0, hi: int | None = None, add: bool = False
    ) -> None:
        if not add:
            g[...] = 0
        if self.small:
            g += self._columns.T @ r
            return
        kernels.add_rows_dot(*self._entries, _thin(r), 0, self.shape[1], _thin(g))

    def cut(self, lo: int, hi: int) -> ColumnsBlock:
        return self

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        """Some of the columns at a time."""
        (samples, features), (indptr, indices, data) = self.shape, self.parts
        sizes = np.zeros(features)
        step = max(1, COPIED_ENTRIES * features // max(self.size, 1))
        for first in range(0, features, step):
            last = min(first + step, features)
            columns = ColumnsBlock(indptr[first : last + 1], indices, data, (samples, last - first))
            columns.applied(np.abs).tdot(weight.astype(np.float64), sizes[first:last])
        return sizes

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
