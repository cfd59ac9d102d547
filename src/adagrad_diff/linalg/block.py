"""Rows of A in memory: what the folds of a source are applied to.

`dot(x, z)` writes z = A x and `tdot(r, g)` writes g = A' r, or adds it, for one vector or several side by side, over all rows
of the block or a range of them. What belongs to samples (targets, weights, residuals) is cut as A is: `part(vector)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .samples import Samples

CACHE_BYTES = 1 << 22  # of A that are expected to stay in the cache between the two products
LEAST_ROWS = 256  # of A that are gone through together
COPIED_ENTRIES = 1 << 16  # of A whose sizes are copied together


class Block(ABC):
    """Rows of a real matrix: shape, dtype, number of stored entries, and where in A they begin."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    size: int  # stored entries: multiplications in one product
    first = 0  # the row of A that comes first here
    divisible = True  # whether products with some of the rows only are possible
    opaque = False  # whether entries are not seen, only products
    threaded = True  # whether its sums may be shared among threads: their order, and so their last bits, depend on it

    def part(self, vector: np.ndarray) -> np.ndarray:
        """What belongs to the samples of this block, of a vector with one entry (or row) per sample of A."""
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
        """The same memory, some of the rows."""

    @abstractmethod
    def applied(self, function: Callable[[np.ndarray], np.ndarray]) -> Block:
        """A copy whose entries are function(entry), where function(0) = 0."""

    @abstractmethod
    def rows(self, index: np.ndarray) -> Block:
        """A copy of a few rows in double precision."""

    def entries(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Those of a few rows in a few columns, as an array in double precision."""
        rows = self.rows(index)
        return np.asarray(
            rows.to_sparse()[:, columns].toarray()
            if hasattr(rows, "parts")
            else rows.to_dense()[:, columns]
        )

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """All of it as an array."""

    def to_sparse(self) -> Any:
        """All of it as a SciPy matrix in CSR."""
        from scipy import sparse

        return sparse.csr_array(self.to_dense())

    def ranges(self, lo: int, hi: int) -> Iterator[tuple[int, int]]:
        """Ranges that cover rows lo..hi, each small enough for the second product to find A in the cache."""
        bytes_per_row = max(1, self.size // max(1, self.shape[0])) * self.dtype.itemsize
        rows = max(LEAST_ROWS, CACHE_BYTES // bytes_per_row) if self.divisible else hi - lo
        return ((first, min(first + rows, hi)) for first in range(lo, hi, max(1, rows)))

    # ------------------------------------------------------------ what a linear model asks for

    def own_kernels(self, samples: Samples) -> bool:
        """Whether a pass is made by kernels of ours, which threads of ours may share: BLAS brings its own."""
        return False

    def linear_pass(self, samples: Samples) -> Callable[..., None]:
        """rows(x, offset, lo, hi, g, value, add): one pass over some of the rows.

        z = A x + offset;  r = weight * l'(z, b);  value += sum_j weight_j l(z_j, b_j);  g = A' r, or with `add` g += that.
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
            with np.errstate(all="ignore"):  # what overflows is seen in the value
                for first, last in self.ranges(lo, hi):
                    z = samples.r[first:last]
                    self.dot(x, z, first, last)
                    if samples.intercept:
                        z += offset
                    residuals(first, last, value)  # z is the residual from here on
                    self.tdot(z, g, first, last, add=add or first > lo)

        return rows

    def moments(self, weight: np.ndarray) -> np.ndarray:
        """Sums over samples of weight times the entries, their squares, and 1 where they are not zero: (3, features)."""
        sums = np.zeros((3, self.shape[1]))
        for lo, hi in self.ranges(0, self.shape[0]):
            rows = self.cut(lo, hi)
            for k, part in enumerate((rows, rows.applied(np.square), rows.applied(_filled))):
                part.tdot(weight[lo:hi], total := np.empty(self.shape[1], self.dtype))
                sums[k] += total
        return sums

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        """sum_j weight_j |a_ji| for every column i."""
        sizes, samples = np.zeros(self.shape[1]), self.shape[0]
        step = max(1, COPIED_ENTRIES * samples // max(self.size, 1))
        for lo in range(0, samples, step):
            hi = min(lo + step, samples)
            self.cut(lo, hi).applied(np.abs).tdot(weight[lo:hi].astype(np.float64), sizes, add=True)
        return sizes

    def column_sums(self, weight: np.ndarray) -> np.ndarray:
        """`moments` and, below them, `column_sizes`: (4, features)."""
        return np.vstack([self.moments(weight), self.column_sizes(weight)])

    def largest(self) -> float:
        """The largest absolute value of an entry."""
        raise NotImplementedError

    def diagonal(self) -> np.ndarray:
        """Of a square matrix whose first row is ours."""
        raise NotImplementedError

    def skew(self) -> float:
        """How far a square matrix is from symmetric: the largest |a_ij - a_ji|."""
        raise NotImplementedError


def _filled(values: np.ndarray) -> np.ndarray:
    return np.asarray(values != 0, values.dtype)


def aligned(array: np.ndarray) -> np.ndarray:
    """The same array, or a copy if its numbers begin at odd places, as those that came over a network may.

    NumPy does not hand these to BLAS, but adds up by itself: slower, and with other last digits.
    """
    return array if array.flags.aligned else array.copy(order="K")


def writeable(array: np.ndarray) -> np.ndarray:
    """The same memory, with a flag that says one may write to it.

    Numba compiles every kernel once more for arrays that must not be written to: seconds, on the first fit. Kernels never write
    to A, so the flag is all that differs.
    """
    return array if array.flags.writeable else np.asarray(_Writeable(array))


class _Writeable:
    """NumPy takes the memory, and keeps this object, and so the array, alive."""

    def __init__(self, array: np.ndarray):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
