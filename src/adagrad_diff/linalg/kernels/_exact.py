"""Sums and products in twice the precision: a number is an unevaluated sum of two doubles, hi + lo.

TwoSum and TwoProduct (Knuth, Dekker) give the rounding error of an operation as a number, exactly, if
operations are neither reordered nor contracted: these kernels are compiled without fast mathematics, and
NumPy does neither. Sums follow Dot2 of Ogita, Rump and Oishi: hi is summed as usual, and lo collects what
was lost. The sum of n products is then known to (n + 8)^2 2^-105 times the sum of their sizes, which is the
third row of `out`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import plain

SPLITTER = 134217729.0  # 2^27 + 1


@plain
def two_sum(a: Any, b: Any) -> Any:
    """a + b = s + e exactly, s being the rounded sum"""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@plain
def two_product(a: Any, b: Any) -> Any:
    """a b = p + e exactly, p being the rounded product"""
    p, c, d = a * b, SPLITTER * a, SPLITTER * b
    ah, bh = c - (c - a), d - (d - b)
    al, bl = a - ah, b - bh
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def pair_sum(p: Any) -> Any:
    """np.sum(p, axis=0) = s + e, e being what was lost but for rounding of its own."""
    lost = np.zeros(p.shape[1:])
    while len(p) > 1:
        half = len(p) // 2
        s, e = two_sum.py_func(p[:half], p[half : 2 * half])
        lost += e.sum(axis=0)
        p = np.concatenate([s, p[2 * half :]])
    return (p[0], lost) if len(p) else (lost, lost)


def _dense_dot(A: Any, x: Any, low: Any, out: Any) -> None:
    _dense_tdot(A.T, x, low, out)


def _dense_tdot(A: Any, r: Any, low: Any, out: Any) -> None:
    A = A.astype(np.float64, copy=False)
    p, e = two_product.py_func(A, r[:, None])
    s, lost = pair_sum(p)
    out[0], f = two_sum.py_func(out[0], s)
    out[1] += f + lost + (e.sum(axis=0) + low @ A)
    out[2] += np.abs(p).sum(axis=0)


@plain(small=_dense_dot)
def exact_dense_dot(A: Any, x: Any, low: Any, out: Any) -> None:
    """out[0] + out[1] += A @ (x + low);  out[2] += abs(A) @ abs(x)"""
    for j in range(A.shape[0]):
        row, s, c, m = A[j], out[0, j], out[1, j], out[2, j]
        for i in range(row.size):
            a = np.float64(row[i])
            p, e = two_product(a, x[i])
            s, f = two_sum(s, p)
            c += (e + f) + a * low[i]
            m += abs(p)
        out[0, j], out[1, j], out[2, j] = s, c, m


@plain(small=_dense_tdot)
def exact_dense_tdot(A: Any, r: Any, low: Any, out: Any) -> None:
    """out[0] + out[1] += A.T @ (r + low);  out[2] += abs(A.T) @ abs(r)"""
    hi, lo, size = out[0], out[1], out[2]
    for j in range(A.shape[0]):
        row, rh, rl = A[j], r[j], low[j]
        if rh == 0.0 and rl == 0.0:
            continue
        for i in range(row.size):
            a = np.float64(row[i])
            p, e = two_product(a, rh)
            hi[i], f = two_sum(hi[i], p)
            lo[i] += (e + f) + a * rl
            size[i] += abs(p)


@plain
def exact_rows_dot(indptr: Any, indices: Any, data: Any, x: Any, low: Any, out: Any) -> None:
    """The same as `exact_dense_dot` for A in compressed rows"""
    for j in range(indptr.size - 1):
        s, c, m = out[0, j], out[1, j], out[2, j]
        for k in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            a, i = np.float64(data[k]), np.uint64(indices[k])
            p, e = two_product(a, x[i])
            s, f = two_sum(s, p)
            c += (e + f) + a * low[i]
            m += abs(p)
        out[0, j], out[1, j], out[2, j] = s, c, m


@plain
def exact_rows_tdot(indptr: Any, indices: Any, data: Any, r: Any, low: Any, out: Any) -> None:
    """The same as `exact_dense_tdot` for A in compressed rows"""
    hi, lo, size = out[0], out[1], out[2]
    for j in range(indptr.size - 1):
        rh, rl = r[j], low[j]
        if rh == 0.0 and rl == 0.0:
            continue
        for k in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            a, i = np.float64(data[k]), np.uint64(indices[k])
            p, e = two_product(a, rh)
            hi[i], f = two_sum(hi[i], p)
            lo[i] += (e + f) + a * rl
            size[i] += abs(p)
