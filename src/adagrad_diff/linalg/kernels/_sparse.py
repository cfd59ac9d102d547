"""The two products with a matrix in compressed rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import plain


@plain
def add_rows_dot(indptr: Any, indices: Any, data: Any, x: Any, lo: Any, hi: Any, z: Any) -> None:
    """z += A[lo:hi] @ x for A in compressed rows"""
    for j in range(lo, hi):
        start, stop = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
        if x.ndim == 1:
            total = z[j - lo]
            for p in range(start, stop):
                total += data[p] * x[np.uint64(indices[p])]
            z[j - lo] = total
        elif x.shape[1] == 3:  # the trajectories of eta="auto": sums in registers
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
            while start + four <= stop:  # four at a time: the row of z is read and written less
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
    """g += A[lo:hi].T @ r for A in compressed rows"""
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
