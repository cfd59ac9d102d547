"""Dense rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._threads import over_rows, thread_count
from . import kernels
from .block import Block, aligned, writeable
from .kernels import is_small
from .samples import Samples

FUSED_WIDTH = 8  # trajectories up to which one pass of ours over A beats two products by BLAS


class DenseBlock(Block):
    """A NumPy array in any order; only one whose entries BLAS cannot address is copied."""

    def __init__(
        self,
        array: np.ndarray,
        first: int = 0,
        threaded: bool = True,
        small: bool | None = None,
    ):
        array = aligned(array)
        unit = array.itemsize in array.strides or 1 in array.shape
        self.array = (
            array if unit and min(array.strides, default=0) > 0 else np.ascontiguousarray(array)
        )
        self._entries = writeable(self.array)  # what kernels see
        self.shape, self.dtype, self.size = array.shape, array.dtype, array.size
        self.first, self.threaded = first, threaded
        # Small arrays are left to NumPy, and so are square ones, which are only multiplied.
        square = array.shape[0] == array.shape[1]
        self.small = is_small(array.size, square) if small is None else small

    def __reduce__(self) -> Any:
        """To another process: without what kernels see, which is made again."""
        return DenseBlock, (self.array, self.first, self.threaded, self.small)

    def _own(self, vector: np.ndarray) -> bool:
        """Whether a product is one for our kernels: after one of BLAS, its threads stay awake and in the way of ours."""
        return vector.ndim == 1 and self.array.flags.c_contiguous and not self.small

    def _threads(self, rows: int, columns: int) -> int:
        return min(thread_count(rows * columns), rows) if self.threaded else 1

    def dot(self, x: np.ndarray, z: np.ndarray, lo: int = 0, hi: int | None = None) -> None:
        A = self._entries[lo:hi]
        if not self._own(x):
            np.matmul(A, x, out=z)
            return
        z[...] = 0
        threads = self._threads(*A.shape)
        if threads == 1:
            kernels.add_dense_dot(A, x, z)
        else:
            over_rows(lambda _, a, b: kernels.add_dense_dot(A[a:b], x, z[a:b]), len(A), threads)

    def tdot(
        self, r: np.ndarray, g: np.ndarray, lo: int = 0, hi: int | None = None, add: bool = False
    ) -> None:
        A = self._entries[lo:hi]
        if self._own(r):
            if not add:
                g[...] = 0
            threads = self._threads(*A.shape)
            if threads == 1:
                kernels.add_dense_tdot(A, r, g)
            else:
                parts = np.zeros((threads, g.size), g.dtype)
                over_rows(
                    lambda k, a, b: kernels.add_dense_tdot(A[a:b], r[a:b], parts[k]),
                    len(A),
                    threads,
                )
                g += parts.sum(axis=0)
        elif add:
            g += A.T @ r
        else:
            np.matmul(A.T, r, out=g)

    def own_kernels(self, samples: Samples) -> bool:
        return (
            samples.scalar is not None
            and not self.small
            and self.array.flags.c_contiguous
            and samples.width <= FUSED_WIDTH
        )

    def linear_pass(self, samples: Samples) -> Callable[..., None]:
        if not self.own_kernels(samples):
            return super().linear_pass(samples)
        return self._fused(samples) if samples.r.ndim == 1 else self._fused_few(samples)

    def _fused(self, samples: Samples) -> Callable[..., None]:
        kernel, A, s = kernels.dense_pass(samples.scalar), self._entries, samples

        def rows(
            x: np.ndarray,
            offset: Any,
            lo: int,
            hi: int,
            g: np.ndarray,
            value: np.ndarray,
            add: bool,
        ) -> None:
            if not add:
                g.fill(0)
            kernel(A, x, offset[0], s.b, s.weight, s.theta, lo, hi, s.r, g, value)

        return rows

    def _fused_few(self, samples: Samples) -> Callable[..., None]:
        kernel, A, s = kernels.dense_pass_few(samples.scalar), self._entries, samples
        memory: dict[int, np.ndarray] = {}

        def rows(
            x: np.ndarray,
            offset: Any,
            lo: int,
            hi: int,
            g: np.ndarray,
            value: np.ndarray,
            add: bool,
        ) -> None:
            if lo not in memory:  # one per thread
                memory[lo] = np.empty((2, *x.shape[::-1]), x.dtype)
            if not add:
                g.fill(0)
            kernel(A, x, offset, s.b, s.weight, s.theta, lo, hi, memory[lo], s.r, g, value)

        return rows

    def moments(self, weight: np.ndarray) -> np.ndarray:
        own = self.small or self._own(weight)
        return self.column_sums(weight)[:3] if own else super().moments(weight)

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        own = self.small or self._own(weight)
        return self.column_sums(weight)[3] if own else super().column_sizes(weight)

    def column_sums(self, weight: np.ndarray) -> np.ndarray:
        if self.small:
            A, w = self.array.astype(np.float64, copy=False), weight.astype(np.float64)
            return np.array([w @ A, w @ A**2, w @ (A != 0), w @ np.abs(A)])
        if not self._own(weight):
            return super().column_sums(weight)
        weight, threads = weight.astype(np.float64), self._threads(*self.shape)
        parts, A = np.zeros((threads, 4, self.shape[1])), self._entries
        over_rows(
            lambda k, a, b: kernels.dense_sums(A[a:b], weight[a:b], parts[k]), len(A), threads
        )
        return np.asarray(parts.sum(axis=0))

    def cut(self, lo: int, hi: int) -> DenseBlock:
        return DenseBlock(self.array[lo:hi], self.first + lo, self.threaded, self.small)

    def applied(self, function: Callable[[np.ndarray], np.ndarray]) -> DenseBlock:
        return DenseBlock(function(self.array), self.first, self.threaded)

    def rows(self, index: np.ndarray) -> DenseBlock:
        return DenseBlock(self.array[index].astype(np.float64))

    def entries(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self.array[np.ix_(index, columns)], np.float64)

    def to_dense(self) -> np.ndarray:
        return self.array

    def largest(self) -> float:
        return max(float(self.array.max()), -float(self.array.min()))

    def diagonal(self) -> np.ndarray:
        return self.array.diagonal(self.first)

    def skew(self) -> float:
        return float(np.abs(self.array - self.array.T).max())
