"""Rows of A in memory, and the pass of a linear model over them: predictions, residuals, gradient.

`dot(x, z)` writes z = A x and `tdot(r, g)` writes g = A' r, or adds it, for a vector or a matrix, over
all rows of the block or a range of them. `part(vector)` are the targets, weights or residuals of the
samples of a block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from .compiling import is_small, scalar_kernel, takes_arrays

CACHE_BYTES = 1 << 22  # bytes of A that are expected to stay in the cache between the two products
LEAST_ROWS = 256  # rows of A in one step of a pass, at least
TILE_SAMPLES = 64  # samples of one trajectory that are gathered into a vector
WIDE_ROW = 8  # trajectories from which on the row of a sample is vector enough


@dataclass(frozen=True)
class Samples:
    """Targets b, weights and, after a pass over A, the residuals r = weight * l'(z, b) of samples."""

    b: np.ndarray
    weight: np.ndarray
    batch: tuple[int, ...]  # shape of the predictions for one sample: () or (trajectories,)
    theta: float  # parameter of the scalar loss
    scalar: Any  # l(z, b, theta) -> (value, derivative); None for losses of several scores
    intercept: bool  # whether an offset is added to predictions
    r: np.ndarray = field(default_factory=lambda: np.empty(0))  # (samples, *batch) if allocated

    @property
    def width(self) -> int:
        """The number of predictions for one sample."""
        return prod(self.batch)

    def with_memory(self) -> Samples:
        """Return the same samples with memory for residuals."""
        return replace(self, r=np.empty((len(self.b), *self.batch), self.weight.dtype))

    def part(self, lo: int, hi: int) -> Samples:
        """Return the samples of a block. Their residuals are views."""
        return replace(self, b=self.b[lo:hi], weight=self.weight[lo:hi], r=self.r[lo:hi])

    def residuals(self) -> Callable[[int, int, np.ndarray], None]:
        """Return a function (lo, hi, value): predictions r[lo:hi] become residuals, value += loss."""
        kernel = residuals(self.scalar)
        return lambda lo, hi, value: kernel(self.r, self.b, self.weight, self.theta, lo, hi, value)


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
            for k, part in enumerate(
                (rows, rows.applied(np.square), rows.applied(lambda a: (a != 0).astype(a.dtype)))
            ):
                part.tdot(weight[lo:hi], total := np.empty(self.shape[1], self.dtype))
                sums[k] += total
        return sums

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        """Return sum_j weight_j |a_ji| for every column i."""
        sizes = np.zeros(self.shape[1])
        for lo, hi in self.ranges(0, self.shape[0]):
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


class Pass:
    """A pass of a linear model over A, with a value and a gradient for each trajectory."""

    def __init__(self, source: Any, samples: Samples):
        self.source, self.samples = source, samples

    def __call__(
        self, x: np.ndarray, offset: Any, g: np.ndarray, value: np.ndarray, add: bool
    ) -> np.ndarray:
        """Make the pass, and return rows that add up to the sum of the residuals.

        z = A x + offset;  r = weight * l'(z, b);  value += sum_j weight_j l(z_j, b_j);  g = A' r, or
        g += A' r if `add`.
        """
        losses, gradient = self.source.fold(_pass_of_block, x, offset, self.samples)
        value += losses
        np.add(g, gradient, out=g) if add else np.copyto(g, gradient)
        return self.samples.r

    def residuals(self, columns: Any = slice(None)) -> np.ndarray:
        """Return r at the last x, (samples,) or some columns of (samples, width)."""
        r = self.samples.r
        return r if r.ndim == 1 else r[:, columns]

    def fold(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the sum over the blocks of function(block, its samples, *args)."""
        return self.source.fold(_with_samples, self.samples, function, args)


def _with_samples(
    block: Block, samples: Samples, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    return function(block, samples.part(block.first, block.first + block.shape[0]), *args)


def _pass_of_block(
    block: Block, x: np.ndarray, offset: Any, samples: Samples
) -> tuple[np.ndarray, np.ndarray]:
    rows = block.shape[0]
    value, g = np.zeros(samples.width), np.empty(x.shape, block.dtype)
    samples = samples.part(block.first, block.first + rows)
    block.linear_pass(samples)(x, offset, 0, rows, g, value, False)
    return value, g


# ------------------------------------------------------------------ residuals


def residuals(scalar: Any) -> Any:
    """Return the function (z, b, weight, theta, lo, hi, out) that makes residuals of predictions.

    out += np.sum(weight * value(z, b), axis=0);  z <- weight * derivative(z, b);  both for samples
    lo..hi, where samples of weight zero count as zero.
    """
    arrays = takes_arrays(scalar)

    def function(z: Any, b: Any, weight: Any, theta: Any, lo: Any, hi: Any, out: Any) -> None:
        if arrays and is_small(z.size):
            _numpy_residuals(scalar, z[lo:hi], b[lo:hi], weight[lo:hi], theta, out)
        else:
            compiled_residuals(scalar)(z, b, weight, theta, lo, hi, out)

    return function


@np.errstate(all="ignore")  # an overflow shows in the value
def _numpy_residuals(scalar: Any, z: Any, b: Any, weight: Any, theta: float, out: Any) -> None:
    if z.ndim == 2:
        b, weight = b[:, None], weight[:, None]
    value, derivative = scalar(z.astype(np.float64, copy=False), b, theta)
    value, derivative = weight * value, weight * derivative
    if not weight.all():  # they may be infinite there
        value, derivative = (np.where(weight == 0, 0.0, a) for a in (value, derivative))
    out += np.add.reduce(value)
    z[...] = derivative


@scalar_kernel
def compiled_residuals(scalar: Any, column_residuals: Any) -> Any:
    def kernel(z: Any, b: Any, weight: Any, theta: Any, lo: Any, hi: Any, out: Any) -> None:
        if z.ndim == 1:
            out[0] += column_residuals(z[lo:hi], b[lo:hi], weight[lo:hi], theta)
        elif z.shape[1] < WIDE_ROW:
            column = np.empty(TILE_SAMPLES, z.dtype)
            for first in range(lo, hi, TILE_SAMPLES):
                last = min(first + TILE_SAMPLES, hi)
                tile = z[first:last]
                for k in range(z.shape[1]):
                    for t in range(last - first):
                        column[t] = tile[t, k]
                    out[k] += column_residuals(
                        column[: last - first], b[first:last], weight[first:last], theta
                    )
                    for t in range(last - first):
                        tile[t, k] = column[t]
        else:
            for j in range(lo, hi):
                for k in range(z.shape[1]):
                    value, derivative = scalar(z[j, k], b[j], theta)
                    out[k] += weight[j] * value if weight[j] != 0.0 else 0.0
                    z[j, k] = weight[j] * derivative if weight[j] != 0.0 else 0.0

    return kernel
