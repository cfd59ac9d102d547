"""Dense rows: products, and the value and gradient of a linear model in one pass over A."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._threads import over_rows, thread_count
from .block import Block, Samples, aligned, writeable
from .compiling import compiled, is_small, scalar_kernel

FUSED_WIDTH = (
    8  # trajectories up to which one compiled pass over A is faster than two products of BLAS
)
TILE_ROWS = 32  # rows of A that are read from memory, and used a second time in the cache
SUMMED_ROWS = 1024  # rows whose sums are separate, so that rounding errors stay small


class DenseBlock(Block):
    """A NumPy array in any order. It is copied only if BLAS cannot address its entries."""

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
        """Send it to another process without the view for the kernels."""
        return DenseBlock, (self.array, self.first, self.threaded, self.small)

    def _own(self, vector: np.ndarray) -> bool:
        """Return whether the kernels multiply. Threads of BLAS stay awake, and would slow ours down."""
        return vector.ndim == 1 and self.array.flags.c_contiguous and not self.small

    def _threads(self, rows: int, columns: int) -> int:
        return min(thread_count(rows * columns), rows) if self.threaded else 1

    def _sums(self, kernel: Any, A: np.ndarray, weight: np.ndarray, shape: tuple[int, ...]) -> Any:
        """Return the sums of kernel(rows of A, their weights, sums) over all rows, with threads."""
        threads = self._threads(*A.shape)
        parts = np.zeros((threads, *shape), weight.dtype)
        over_rows(lambda k, lo, hi: kernel(A[lo:hi], weight[lo:hi], parts[k]), len(A), threads)
        return parts.sum(axis=0)

    def dot(self, x: np.ndarray, z: np.ndarray, lo: int = 0, hi: int | None = None) -> None:
        A = self._entries[lo:hi]
        if not self._own(x):
            np.matmul(A, x, out=z)
            return
        z[...] = 0
        threads = self._threads(*A.shape)
        over_rows(lambda _, lo, hi: add_dense_dot(A[lo:hi], x, z[lo:hi]), len(A), threads)

    def tdot(
        self, r: np.ndarray, g: np.ndarray, lo: int = 0, hi: int | None = None, add: bool = False
    ) -> None:
        A, own = self._entries[lo:hi], self._own(r)
        if not (own or add):
            np.matmul(A.T, r, out=g)
            return
        product = self._sums(add_dense_tdot, A, r, g.shape) if own else A.T @ r
        g[...] = g + product if add else product

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
        template = dense_pass if samples.r.ndim == 1 else dense_pass_of_few
        kernel, A, s = template(samples.scalar), self._entries, samples

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
            kernel(A, x, offset, s.b, s.weight, s.theta, lo, hi, s.r, g, value)

        return rows

    def moments(self, weight: np.ndarray) -> np.ndarray:
        return self.column_sums(weight)[:3]

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        return np.asarray(self.column_sums(weight)[3])

    def column_sums(self, weight: np.ndarray) -> np.ndarray:
        weight, sums = weight.astype(np.float64), np.zeros((4, self.shape[1]))
        if self._own(weight):
            sums[...] = self._sums(dense_sums, self._entries, weight, sums.shape)
            return sums
        for lo, hi in self.ranges(0, len(weight)):
            A, w = self.array[lo:hi].astype(np.float64, copy=False), weight[lo:hi]
            sums += [w @ A, w @ A**2, w @ (A != 0), w @ np.abs(A)]
        return sums

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


# ------------------------------------------------------------------ kernels


@compiled
def add_dense_dot(A: Any, x: Any, z: Any) -> None:
    """z += A @ x"""
    for j in range(z.size):
        row, total = A[j], z[j]
        for i in range(row.size):
            total += row[i] * x[i]
        z[j] = total


@compiled
def add_dense_tdot(A: Any, r: Any, g: Any) -> None:
    """g += A.T @ r"""
    whole = r.size - r.size % 4
    for j in range(0, whole, 4):  # four rows at a time: g is read and written less
        a0, a1, a2, a3 = A[j], A[j + 1], A[j + 2], A[j + 3]
        r0, r1, r2, r3 = r[j], r[j + 1], r[j + 2], r[j + 3]
        for i in range(g.size):
            g[i] += (r0 * a0[i] + r1 * a1[i]) + (r2 * a2[i] + r3 * a3[i])
    for j in range(whole, r.size):
        row = A[j]
        for i in range(g.size):
            g[i] += r[j] * row[i]


@compiled
def add_rows(A: Any, rows: Any, z: Any, g: Any) -> None:
    """g += z @ A[rows], four rows at a time"""
    whole = rows.size - rows.size % 4
    for t in range(0, whole, 4):
        a0, a1, a2, a3 = A[rows[t]], A[rows[t + 1]], A[rows[t + 2]], A[rows[t + 3]]
        p0, p1, p2, p3 = z[t], z[t + 1], z[t + 2], z[t + 3]
        for i in range(a0.size):
            g[i] += (p0 * a0[i] + p1 * a1[i]) + (p2 * a2[i] + p3 * a3[i])
    for t in range(whole, rows.size):
        row, residual = A[rows[t]], z[t]
        for i in range(row.size):
            g[i] += residual * row[i]


@compiled
def dense_sums(A: Any, weight: Any, sums: Any) -> None:
    """sums += [weight @ A, weight @ A**2, weight @ (A != 0), weight @ abs(A)], in one pass over A"""
    part = np.empty(sums.shape)
    for first in range(0, weight.size, SUMMED_ROWS):
        part[:] = 0.0
        for j in range(first, min(first + SUMMED_ROWS, weight.size)):
            row, w = A[j], weight[j]
            for i in range(row.size):
                a = np.float64(row[i])
                part[0, i] += w * a
                part[1, i] += w * a * a
                part[2, i] += w if a != 0.0 else 0.0
                part[3, i] += w * abs(a)
        sums += part


@scalar_kernel
def dense_pass(scalar: Any, residuals: Any) -> Any:
    def kernel(
        A: Any,
        x: Any,
        offset: Any,
        b: Any,
        weight: Any,
        theta: Any,
        lo: Any,
        hi: Any,
        r: Any,
        g: Any,
        out: Any,
    ) -> None:
        """Make one pass over rows of A for one trajectory.

        z = A[lo:hi] @ x + offset;  r[lo:hi] = weight * derivative(z, b);  g += A[lo:hi].T @ r[lo:hi];
        out += loss. It saves up to a sixth of the time of `dense_pass_of_few`, and half of that of BLAS.
        """
        z, rows = np.empty(TILE_ROWS, r.dtype), np.empty(TILE_ROWS, np.uint64)
        for first in range(lo, hi, TILE_ROWS):
            last = min(first + TILE_ROWS, hi)
            tile = r[first:last]
            tile[:] = offset[0]
            add_dense_dot(A[first:last], x, tile)
            out[0] += residuals(tile, b[first:last], weight[first:last], theta)
            count = 0  # residuals are zero right of the hinge
            for j in range(first, last):
                rows[count], z[count] = j, r[j]
                count += r[j] != 0.0
            add_rows(A, rows[:count], z[:count], g)

    return kernel


@compiled
def _add_dots_of_three(A: Any, first: Any, last: Any, x: Any, k: Any, z: Any) -> None:
    """z[k : k + 3] += x[k : k + 3] @ A[first:last].T, two rows at a time"""
    x0, x1, x2, whole = x[k], x[k + 1], x[k + 2], last - (last - first) % 2
    for j in range(first, whole, 2):
        t, row, next_row = j - first, A[j], A[j + 1]
        y0, y1, y2 = z[k, t], z[k + 1, t], z[k + 2, t]
        z0, z1, z2 = z[k, t + 1], z[k + 1, t + 1], z[k + 2, t + 1]
        for i in range(row.size):
            y0 += row[i] * x0[i]
            y1 += row[i] * x1[i]
            y2 += row[i] * x2[i]
            z0 += next_row[i] * x0[i]
            z1 += next_row[i] * x1[i]
            z2 += next_row[i] * x2[i]
        z[k, t], z[k + 1, t], z[k + 2, t] = y0, y1, y2
        z[k, t + 1], z[k + 1, t + 1], z[k + 2, t + 1] = z0, z1, z2
    for c in range(k, k + 3):
        add_dense_dot(A[whole:last], x[c], z[c, whole - first : last - first])


@compiled
def _add_rows_of_three(A: Any, rows: Any, z: Any, k: Any, g: Any) -> None:
    """g[k : k + 3] += z[k : k + 3] @ A[rows], four rows at a time"""
    g0, g1, g2, whole = g[k], g[k + 1], g[k + 2], rows.size - rows.size % 4
    for t in range(0, whole, 4):
        a0, a1, a2, a3 = A[rows[t]], A[rows[t + 1]], A[rows[t + 2]], A[rows[t + 3]]
        p0, p1, p2, p3 = z[k, t], z[k, t + 1], z[k, t + 2], z[k, t + 3]
        q0, q1, q2, q3 = z[k + 1, t], z[k + 1, t + 1], z[k + 1, t + 2], z[k + 1, t + 3]
        s0, s1, s2, s3 = z[k + 2, t], z[k + 2, t + 1], z[k + 2, t + 2], z[k + 2, t + 3]
        for i in range(a0.size):
            g0[i] += (p0 * a0[i] + p1 * a1[i]) + (p2 * a2[i] + p3 * a3[i])
            g1[i] += (q0 * a0[i] + q1 * a1[i]) + (q2 * a2[i] + q3 * a3[i])
            g2[i] += (s0 * a0[i] + s1 * a1[i]) + (s2 * a2[i] + s3 * a3[i])
    for c in range(k, k + 3):
        add_rows(A, rows[whole:], z[c, whole:], g[c])


@scalar_kernel
def dense_pass_of_few(scalar: Any, residuals: Any) -> Any:
    def kernel(
        A: Any,
        x: Any,
        offset: Any,
        b: Any,
        weight: Any,
        theta: Any,
        lo: Any,
        hi: Any,
        r: Any,
        g: Any,
        out: Any,
    ) -> None:
        """Do the same for a few trajectories: x and g (features, few), r (samples, few).

        Groups of three, as many as eta="auto" has, load each number of A once from the cache. That
        halves the time of a pass over 2000 x 2000 numbers, and saves a fifth at 20000 x 50.
        """
        few = x.shape[1]
        x_columns, g_columns = np.empty((2, few, x.shape[0]), x.dtype)
        threes, z = few - few % 3, np.empty((few, TILE_ROWS), r.dtype)
        rows = np.empty(TILE_ROWS, np.uint64)
        for i in range(x.shape[0]):
            for k in range(few):
                x_columns[k, i], g_columns[k, i] = x[i, k], 0.0
        for first in range(lo, hi, TILE_ROWS):
            last = min(first + TILE_ROWS, hi)
            for k in range(few):
                z[k] = offset[k]
            for k in range(0, threes, 3):
                _add_dots_of_three(A, first, last, x_columns, k, z)
            for k in range(threes, few):
                add_dense_dot(A[first:last], x_columns[k], z[k, : last - first])
            for k in range(few):
                out[k] += residuals(z[k, : last - first], b[first:last], weight[first:last], theta)
            count = 0  # all residuals of a sample are zero right of the hinge
            for j in range(first, last):
                rows[count], active = j, False
                for k in range(few):
                    r[j, k] = z[k, j - first]
                    z[k, count] = r[j, k]
                    active |= r[j, k] != 0.0
                count += active
            for k in range(0, threes, 3):
                _add_rows_of_three(A, rows[:count], z, k, g_columns)
            for k in range(threes, few):
                add_rows(A, rows[:count], z[k], g_columns[k])
        for i in range(x.shape[0]):
            for k in range(few):
                g[i, k] += g_columns[k, i]

    return kernel
