"""Products with a dense matrix, and a linear model's value and gradient in one pass over it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import compiled, scalar_kernel

TILE_ROWS = 32  # rows of A read from memory, then used a second time out of the cache
MANY_ROWS = 1024  # added up apart from all others, so that fewer last digits are lost


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
    for j in range(0, whole, 4):  # in fours: g is read and written less
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
    """g += z @ A[rows], four rows at a time: g is read and written less"""
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
    for first in range(0, weight.size, MANY_ROWS):
        part[:] = 0.0
        for j in range(first, min(first + MANY_ROWS, weight.size)):
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
        """z = A[lo:hi] @ x + offset;  r[lo:hi] = weight * derivative(z, b);  g += A[lo:hi].T @ r[lo:hi]: A is read once"""
        z, rows = np.empty(TILE_ROWS, r.dtype), np.empty(TILE_ROWS, np.uint64)
        for first in range(lo, hi, TILE_ROWS):
            last = min(first + TILE_ROWS, hi)
            tile = r[first:last]
            tile[:] = offset
            add_dense_dot(A[first:last], x, tile)
            out[0] += residuals(tile, b[first:last], weight[first:last], theta)
            count = 0  # samples whose residual is zero (right of the hinge) add nothing
            for j in range(first, last):
                rows[count], z[count] = j, r[j]
                count += r[j] != 0.0
            add_rows(A, rows[:count], z[:count], g)

    return kernel


@compiled
def _add_dots_of_three(A: Any, first: Any, last: Any, x: Any, k: Any, z: Any) -> None:
    """z[k : k + 3] += x[k : k + 3] @ A[first:last].T, two rows at a time: numbers are loaded less often"""
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
def dense_pass_few(scalar: Any, residuals: Any) -> Any:
    def kernel(
        A: Any,
        x: Any,
        offset: Any,
        b: Any,
        weight: Any,
        theta: Any,
        lo: Any,
        hi: Any,
        columns: Any,
        r: Any,
        g: Any,
        out: Any,
    ) -> None:
        """The same for a few trajectories: x and g (features, few), r (samples, few); columns is memory, (2, few, features).

        Trajectories go in threes, as many as eta="auto" has, so that every number of A is loaded less often from the cache.
        """
        few, x_columns, g_columns = x.shape[1], columns[0], columns[1]
        threes, z, rows = (
            few - few % 3,
            np.empty((few, TILE_ROWS), r.dtype),
            np.empty(TILE_ROWS, np.uint64),
        )
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
            count = 0  # samples whose residuals are all zero (right of the hinge) add nothing
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
