"""Sums and products in twice the precision: a number is an unevaluated sum of two doubles, hi + lo.

TwoSum and TwoProduct (Knuth, Dekker) give the rounding error of an operation as a number, exactly, if operations are neither
reordered nor contracted: these kernels are compiled without fast mathematics. Sums go along as Dot2 of Ogita, Rump and Oishi:
hi is summed as usual, and lo collects what was lost. The sum of n products is then known to (n + 8)^2 2^-105 times the sum of
their sizes, which is the third row of `out`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._compile import plain

SPLITTER = 134217729.0  # 2^27 + 1
ROUNDING_UNIT, ROUNDING_SQUARED = (
    2.0**-52,
    2.0**-100,
)  # of one operation, and of one on pairs, with room to spare
(ABSOLUTE, PINBALL, HINGE, SQUARES, HUBER, SQUARED_HINGE, LOGISTIC, POISSON) = range(
    8
)  # the losses that are known here


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


@plain
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


@plain
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


@plain
def _square(t: Any, low: Any) -> Any:
    """(t + low)^2 as a pair"""
    p, e = two_product(t, t)
    return p, e + low * (2.0 * t + low)


@plain
def _loss(kind: int, z: float, low: float, e: float, b: float, theta: float) -> Any:
    """l(z + low, b) as a pair, and how far it may be off if z + low is off by e"""
    if kind in (HINGE, SQUARED_HINGE):
        t, f = two_sum(1.0, -b * z)
        t, f = two_sum(t, f - b * low)  # where 1 - b z cancels, low is no longer small beside it
        e += ROUNDING_SQUARED * (1.0 + abs(z))
        if t + f <= 0.0:
            return 0.0, 0.0, (e if kind == HINGE else e * e)
        if kind == HINGE:
            return t, f, e
        p, q = _square(t, f)
        return p, q, 2.0 * t * e + e * e
    if kind == LOGISTIC:
        margin, more = b * z, b * low
        small = math.exp(-abs(margin))
        value, slope = math.log1p(small), small / (1.0 + small)
        error = 8.0 * ROUNDING_UNIT * value + e + low * low
        if margin < 0.0:
            s, f = two_sum(-margin, value)
            return s, f + more * (slope - 1.0), error + ROUNDING_UNIT * abs(more)
        return value, -slope * more, error
    if kind == POISSON:
        rate = math.exp(z)
        p, q = two_product(b, z)
        s, f = two_sum(rate, -p)
        return (
            s,
            (f - q) + (rate - b) * low,
            8.0 * ROUNDING_UNIT * rate + (2.0 * rate + b) * (e + low * low),
        )
    t, f = two_sum(z, -b)
    t, f = two_sum(t, f + low)  # where z - b cancels, low is no longer small beside it
    e += ROUNDING_SQUARED * (abs(z) + abs(b))
    if kind == SQUARES:
        p, q = _square(t, f)
        return 0.5 * p, 0.5 * q, abs(t) * e + e * e
    if t + f < 0.0 and kind != PINBALL:
        t, f = -t, -f
    if kind == ABSOLUTE:
        return t, f, e
    if kind == HUBER:
        if t <= theta:
            p, q = _square(t, f)
            return 0.5 * p, 0.5 * q, t * e + e * e
        t, g = two_sum(t, -0.5 * theta)
        p, q = two_product(theta, t)
        return p, q + theta * (f + g), theta * e + e * e
    slope = -theta if t + f < 0.0 else 1.0 - theta
    p, q = two_product(slope, t)
    return p, q + slope * f, e


@plain
def _conjugate(kind: int, u: float, low: float, b: float, theta: float) -> Any:
    """l*(u + low, b) as a pair, and how far it may be off; u + low is in the domain"""
    if kind in (LOGISTIC, POISSON):
        if kind == LOGISTIC:
            p, f = -b * u, -b * low
            if p > 0.5:
                p, f = 1.0 - p, -f
        else:
            p, f = two_sum(b, u)
            f += low
        if p <= 0.0 or abs(f) > 0.5 * p:
            return (0.0 if p == 0.0 and f == 0.0 else np.inf), 0.0, 0.0
        logarithm = math.log(p)
        if kind == POISSON:
            s, g = two_sum(p * logarithm, -p)
            return (
                s,
                g + logarithm * f,
                4.0 * ROUNDING_UNIT * (p * abs(logarithm) + abs(f * logarithm)) + f * f / p,
            )
        rest = math.log1p(-p)
        s, g = two_sum(p * logarithm, (1.0 - p) * rest)
        return s, g + (logarithm - rest) * f, 8.0 * ROUNDING_UNIT * abs(s) + 2.0 * f * f / p
    p, q = two_product(b, u)
    q += b * low
    if kind in (ABSOLUTE, PINBALL, HINGE):
        return p, q, 0.0
    s, f = _square(u, low)
    part = 0.25 if kind == SQUARED_HINGE else 0.5
    size = abs(p) + s
    p, g = two_sum(p, part * s)
    return p, (q + g) + part * f, ROUNDING_SQUARED * size


@plain
def exact_losses(kind: int, z: Any, low: Any, error: Any, b: Any, weight: Any, theta: float) -> Any:
    """np.sum(weight * loss(z + low, b)) as a pair, and how far it may be off if z + low is off by error"""
    s, c, off, m = 0.0, 0.0, 0.0, 0.0
    for j in range(z.size):
        if weight[j] != 0.0:
            value, more, e = _loss(kind, z[j], low[j], error[j], b[j], theta)
            p, f = two_product(weight[j], value)
            s, g = two_sum(s, p)
            c += (f + g) + weight[j] * more
            off += weight[j] * e
            m += abs(p)
    return s, c, 2.0 * off + (z.size + 8.0) ** 2 * ROUNDING_SQUARED * m


@plain
def exact_conjugates(kind: int, u: Any, low: Any, b: Any, weight: Any, theta: float) -> Any:
    """np.sum(weight * conjugate(u + low, b)) as a pair, and how far it may be off"""
    s, c, off, m = 0.0, 0.0, 0.0, 0.0
    for j in range(u.size):
        if weight[j] != 0.0:
            value, more, e = _conjugate(kind, u[j], low[j], b[j], theta)
            p, f = two_product(weight[j], value)
            s, g = two_sum(s, p)
            c += (f + g) + weight[j] * more
            off += weight[j] * e
            m += abs(p)
    return s, c, 2.0 * off + (u.size + 8.0) ** 2 * ROUNDING_SQUARED * m
