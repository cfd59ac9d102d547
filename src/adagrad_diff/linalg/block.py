"""Rows of A in memory, to which the folds of a source are applied.

`dot(x, z)` writes z = A x and `tdot(r, g)` writes g = A' r, or adds it, for a vector or a matrix, over
all rows of the block or a range of them. `part(vector)` are the targets, weights or residuals of the
samples of a block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .residuals import Samples

CACHE_BYTES = 1 << 22  # bytes of A that are expected to stay in the cache between the two products
LEAST_ROWS = 256  # rows of A in one step of a pass, at least
COPIED_ENTRIES = 1 << 16  # entries of A whose absolute values are copied together


class Block(ABC):
    """Rows of a real matrix."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    size: int  # stored entries: multiplications in one product
    first = 0  # the row of A at which the block begins
    divisible = True  # whether there are products with a part of the rows
    opaque = False  # whether there are only products, and no entries
    threaded = True  # whether threads may share its sums, which changes their order and last bits

    def part(self, vector: np.ndarray) -> np.ndarray:
        """Return the part of this block, of a vector with one entry (or row) per sample of A."""
        return vector[self.first : self.first + self.shape[0]]

    @abstractmethod
    def dot(self, x: np.ndarray, z: np.ndarray, lo: int = 0, hi: int | None = None) -> None:
        """z = A[lo:hi] x"""

    @abstractmethod
    def tdot(
        self, r: np.ndarray, g: np.ndarray, lo: int = 0, hi: int | None = None, add: bool = False
    ) -> None:
        """g = A[lo:hi]' r, or g += that"""

    @abstractmethod
    def cut(self, lo: int, hi: int) -> Block:
        """Return some of the rows, in the same memory."""

    @abstractmethod
    def applied(self, function: Callable[[np.ndarray], np.ndarray]) -> Block:
        """Return a copy whose entries are function(entry), where function(0) = 0."""

    @abstractmethod
    def rows(self, index: np.ndarray) -> Block:
        """Return a copy of a few rows in double precision."""

    def entries(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the entries of a few rows in a few columns, as an array in double precision."""
        rows = self.rows(index)
        return np.asarray(
            rows.to_sparse()[:, columns].toarray()
            if hasattr(rows, "parts")
            else rows.to_dense()[:, columns]
        )

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """Return all entries as an array."""

    def to_sparse(self) -> Any:
        """Return all entries as a SciPy matrix in CSR."""
        from scipy import sparse

        return sparse.csr_array(self.to_dense())

    def ranges(self, lo: int, hi: int) -> Iterator[tuple[int, int]]:
        """Return ranges of rows that cover lo..hi and stay in the cache for the second product."""
        bytes_per_row = max(1, self.size // max(1, self.shape[0])) * self.dtype.itemsize
        rows = max(LEAST_ROWS, CACHE_BYTES // bytes_per_row) if self.divisible else hi - lo
        return ((first, min(first + rows, hi)) for first in range(lo, hi, max(1, rows)))

    # ------------------------------------------------------------ for linear models

    def own_kernels(self, samples: Samples) -> bool:
        """Return whether kernels make a pass, in threads of ours. BLAS has its own threads."""
        return False

    def linear_pass(self, samples: Samples) -> Callable[..., None]:
        """Return a function rows(x, offset, lo, hi, g, value, add) that makes a pass over some rows.

        z = A x + offset;  r = weight * l'(z, b);  value += sum_j weight_j l(z_j, b_j);  g = A' r, or
        g += A' r if `add`.
        """
        residuals = samples.residuals()

        def rows(
            x: np.ndarray,
            offset: Any,
            lo: int,
            hi: int,
            g: np.ndarray,
            value: np.ndarray,
            add: bool,
        ) -> None:
            with np.errstate(all="ignore"):  # an overflow shows in the value
                for first, last in self.ranges(lo, hi):
                    z = samples.r[first:last]
                    self.dot(x, z, first, last)
                    if samples.intercept:
                        z += offset
                    residuals(first, last, value)  # z is the residual from here on
                    self.tdot(z, g, first, last, add=add or first > lo)

        return rows

    def moments(self, weight: np.ndarray) -> np.ndarray:
        """Return sums over samples of weight * [a, a**2, a != 0] for each column, shape (3, features)."""
        sums = np.zeros((3, self.shape[1]))
        for lo, hi in self.ranges(0, self.shape[0]):
            rows = self.cut(lo, hi)
            for k, part in enumerate((rows, rows.applied(np.square), rows.applied(_filled))):
                part.tdot(weight[lo:hi], total := np.empty(self.shape[1], self.dtype))
                sums[k] += total
        return sums

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        """Return sum_j weight_j |a_ji| for every column i."""
        sizes, samples = np.zeros(self.shape[1]), self.shape[0]
        step = max(1, COPIED_ENTRIES * samples // max(self.size, 1))
        for lo in range(0, samples, step):
            hi = min(lo + step, samples)
            self.cut(lo, hi).applied(np.abs).tdot(weight[lo:hi].astype(np.float64), sizes, add=True)
        return sizes

    def column_sums(self, weight: np.ndarray) -> np.ndarray:
        """Return `moments` and below them `column_sizes`, shape (4, features)."""
        return np.vstack([self.moments(weight), self.column_sizes(weight)])

    def largest(self) -> float:
        """Return the largest absolute value of an entry."""
        raise NotImplementedError

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of a square matrix, as far as it is in this block."""
        raise NotImplementedError

    def skew(self) -> float:
        """Return the largest |a_ij - a_ji| of a square matrix."""
        raise NotImplementedError


def _filled(values: np.ndarray) -> np.ndarray:
    return np.asarray(values != 0, values.dtype)


def aligned(array: np.ndarray) -> np.ndarray:
    """Return the array, or a copy if its memory is not aligned, as after a transfer over a network.

    NumPy does not call BLAS for these, which is slower and rounds differently.
    """
    return array if array.flags.aligned else array.copy(order="K")


def writeable(array: np.ndarray) -> np.ndarray:
    """Return the same memory as a writeable array.

    Numba compiles every kernel again for read-only arrays, which takes seconds. Kernels never write
    to A.
    """
    return array if array.flags.writeable else np.asarray(_Writeable(array))


class _Writeable:
    """The owner of the memory, which NumPy keeps alive."""

    def __init__(self, array: np.ndarray):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
