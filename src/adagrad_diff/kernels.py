"""The compiled inner loops, each with the NumPy statement it computes.

Numba is imported here and nowhere else, and this module is imported only when a run starts, so ``import adagrad_diff``
stays light. Three rules hold throughout:

- every kernel is ``nogil`` and single-threaded; threads are added from outside (`adagrad_diff._threads`), so that
  concurrent runs in one process are safe whatever Numba's threading layer;
- indices are unsigned before they are used: Numba's handling of negative ones doubles the time of a sparse product;
- sums may be reordered (``reassoc``), but nothing assumes finite numbers: NaN and inf must survive to be reported. (So
  compare with ``< np.inf`` in such a kernel: Numba's ``np.isfinite(x)`` is ``x - x``, which reordering turns into 0.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from . import _elementary

FASTMATH = {"reassoc", "contract", "nsz"}
TILE = 32  # rows of A read from memory, then used a second time out of the cache

OPTIONS: Any = {"nogil": True, "error_model": "numpy"}  # division by zero gives inf, as in NumPy, and no branch

INLINE: Any = {"forceinline": True}  # also a long function, or the loop around it is not vectorised

compiled = njit(cache=True, fastmath=FASTMATH, **OPTIONS)
plain = njit(cache=True, **OPTIONS)  # gathers: reordering these sums makes them slower


# ---------------------------------------------------------------- the metric


@compiled
def add_squares(total, g):
    """total += g**2"""
    for i in range(total.size):
        total[i] += np.float64(g[i]) * g[i]


@compiled
def add_squared_differences(total, g, g_prev):
    """total += (g - g_prev)**2"""
    for i in range(total.size):
        change = np.float64(g[i]) - g_prev[i]
        total[i] += change * change


@plain
def add_block_squares(total, labels, g):
    """np.add.at(total, labels, g**2)"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(g.shape[1]):
            total[block, k] += np.float64(g[i, k]) * g[i, k]


@plain
def add_block_squared_differences(total, labels, g, g_prev):
    """np.add.at(total, labels, (g - g_prev)**2)"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(g.shape[1]):
            change = np.float64(g[i, k]) - g_prev[i, k]
            total[block, k] += change * change


@plain
def overflow(g, out):
    """out = np.sum(0 * g**2, axis=0) in double precision: zero, or NaN where a square is not finite"""
    if g.ndim == 1:
        bad = 0
        for i in range(g.size):
            bad += not np.float64(g[i]) * g[i] < np.inf  # also where it is NaN
        out[0] = np.nan if bad else 0.0
    else:
        out[:] = 0
        for i in range(g.shape[0]):
            for k in range(g.shape[1]):
                out[k] += 0.0 if np.float64(g[i, k]) * g[i, k] < np.inf else np.nan


@compiled
def forward(total, eps, eta, scale, x, g, step, out):
    """step = eta * scale[:, None] / (eps + np.sqrt(total));  out = x - step * g; scale of size 1 or one per row"""
    if total.ndim == 1:
        for i in range(total.size):
            step[i] = eta[0] * scale[i if scale.size > 1 else 0] / (eps + np.sqrt(total[i]))
            out[i] = x[i] - step[i] * g[i]
    else:
        for i in range(total.shape[0]):
            factor = scale[i if scale.size > 1 else 0]
            for k in range(total.shape[1]):
                step[i, k] = eta[k] * factor / (eps + np.sqrt(total[i, k]))
                out[i, k] = x[i, k] - step[i, k] * g[i, k]


@plain
def block_forward(total, labels, eps, eta, scale, x, g, step, out):
    """step = eta * scale[:, None] / (eps + np.sqrt(total[labels]));  out = x - step * g"""
    for i in range(labels.size):
        block, factor = np.uint64(labels[i]), scale[i if scale.size > 1 else 0]
        for k in range(total.shape[1]):
            step[i, k] = eta[k] * factor / (eps + np.sqrt(total[block, k]))
            out[i, k] = x[i, k] - step[i, k] * g[i, k]


@plain
def keep(x, running, better, x_sum, x_best):
    """x_sum[:, running] += x[:, running];  x_best[:, better] = x[:, better]"""
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            x_sum[i, k] += x[i, k] if running[k] else 0.0
            x_best[i, k] = x[i, k] if better[k] else x_best[i, k]


@compiled
def diagnose(x_prev, x, step, g_prev, g, out):
    """out = np.sum(((x_prev - x) / step + g - g_prev)**2, axis=0), np.mean(step, axis=0)"""
    if x.ndim == 1:
        squares, steps = 0.0, 0.0
        for i in range(x.size):
            u = (x_prev[i] - x[i]) / step[i] + (g[i] - g_prev[i])
            squares += np.float64(u) * u
            steps += step[i]
        out[0, 0] = squares
        out[1, 0] = steps / x.size
    else:
        out[:] = 0
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                u = (x_prev[i, k] - x[i, k]) / step[i, k] + (g[i, k] - g_prev[i, k])
                out[0, k] += np.float64(u) * u
                out[1, k] += step[i, k]
        out[1] /= x.shape[0]


# ---------------------------------------------------------------- penalties


@compiled
def shrink(z, step, l1, l2, out):
    """out = np.sign(z) * np.maximum(np.abs(z) - step * l1, 0) / (1 + step * l2), l1 and l2 of size 1 or one per row"""
    if z.ndim == 1:
        for i in range(z.size):
            lam, mu = l1[i if l1.size > 1 else 0], l2[i if l2.size > 1 else 0]
            size = abs(z[i]) - step[i] * lam
            out[i] = np.copysign(0.0 if size < 0.0 else size, z[i]) / (1.0 + step[i] * mu)
    else:
        for i in range(z.shape[0]):
            lam, mu = l1[i if l1.size > 1 else 0], l2[i if l2.size > 1 else 0]
            if mu == 0.0:  # divisions take most of the time
                for k in range(z.shape[1]):
                    size = abs(z[i, k]) - step[i, k] * lam
                    out[i, k] = np.copysign(0.0 if size < 0.0 else size, z[i, k])
            else:
                for k in range(z.shape[1]):
                    size = abs(z[i, k]) - step[i, k] * lam
                    out[i, k] = np.copysign(0.0 if size < 0.0 else size, z[i, k]) / (1.0 + step[i, k] * mu)


@compiled
def elastic_value(x, l1, l2, out):
    """out = np.sum(l1 * np.abs(x) + l2 / 2 * x**2, axis=0), l1 and l2 of size 1 or one per row"""
    if x.ndim == 1:
        total = 0.0
        for i in range(x.size):
            lam, mu = l1[i if l1.size > 1 else 0], l2[i if l2.size > 1 else 0]
            total += lam * abs(x[i]) + 0.5 * mu * x[i] * x[i]
        out[0] = total
    else:
        out[:] = 0
        for i in range(x.shape[0]):
            lam, mu = l1[i if l1.size > 1 else 0], l2[i if l2.size > 1 else 0]
            for k in range(x.shape[1]):
                out[k] += lam * abs(x[i, k]) + 0.5 * mu * x[i, k] * x[i, k]


# ---------------------------------------------------------------- the linear model


@compiled
def ridge(x, l2, g, out):
    """g = l2 * x;  out += l2 / 2 * np.sum(x**2, axis=0)"""
    if x.ndim == 1:
        total = 0.0
        for i in range(x.size):
            total += x[i] * x[i]
            g[i] = l2 * x[i]
        out[0] += 0.5 * l2 * total
    else:
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[k] += 0.5 * l2 * x[i, k] * x[i, k]
                g[i, k] = l2 * x[i, k]


@plain
def add_rows_dot(indptr, indices, data, x, lo, hi, z):
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
def add_rows_tdot(indptr, indices, data, r, lo, hi, g):
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


@compiled
def dense_dot(A, x, z):
    """z = A @ x"""
    for j in range(z.size):
        row, total = A[j], z.dtype.type(0)
        for i in range(row.size):
            total += row[i] * x[i]
        z[j] = total


@compiled
def add_dense_tdot(A, r, g):
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
def column_sums(r, out):
    """out = np.sum(r, axis=0)"""
    out[:] = 0
    for j in range(r.shape[0]):
        for k in range(r.shape[1]):
            out[k] += r[j, k]


@plain
def softmax_residuals(z, b, weight, lo, hi, out):
    """z (samples, classes, trajectories) <- weight * (softmax(z) - onehot(b)) for samples lo..hi;  out += their loss"""
    for j in range(lo, hi):
        for k in range(z.shape[2]):
            top = z[j, 0, k]
            for c in range(1, z.shape[1]):
                top = max(top, z[j, c, k])
            score, total = z[j, b[j], k], 0.0
            for c in range(z.shape[1]):
                z[j, c, k] = np.exp(z[j, c, k] - top)
                total += z[j, c, k]
            out[k] += weight[j] * (np.log(total) + (top - score))
            for c in range(z.shape[1]):
                z[j, c, k] *= weight[j] / total
            z[j, b[j], k] -= weight[j]


def _scalar_kernel(template: Callable) -> Callable:
    """One compiled copy of `template` per scalar loss, cached in memory and, for this package's losses, on disk.

    Numba's disk cache does not notice when a function that a kernel calls is edited. The losses of this package
    therefore enter the key with a fingerprint of their code and of the elementary functions they may call, and a user's own
    loss is never cached on disk.
    """

    @cache
    def specialise(scalar: Callable) -> Callable:
        code = scalar.__code__
        content = repr((code.co_code, code.co_consts, code.co_names)).encode() + Path(_elementary.__file__).read_bytes()
        fingerprint = hashlib.sha256(content).hexdigest()
        ours = scalar.__module__.startswith(__package__ + ".losses")
        return njit(cache=ours, fastmath=FASTMATH, **OPTIONS)(template(register_jitable(**INLINE)(scalar), fingerprint))

    return specialise


@_scalar_kernel
def residuals(scalar, fingerprint):
    def kernel(z, b, weight, theta, lo, hi, out):
        """out += np.sum(weight * value(z, b), axis=0);  z <- weight * derivative(z, b); both for samples lo..hi"""
        fingerprint  # noqa: B018 (part of the cache key)
        if z.ndim == 1:
            total = 0.0
            for j in range(lo, hi):
                value, derivative = scalar(z[j], b[j], theta)
                total += weight[j] * value if weight[j] != 0.0 else 0.0  # also where the value is infinite
                z[j] = weight[j] * derivative if weight[j] != 0.0 else 0.0
            out[0] += total
        else:
            for j in range(lo, hi):
                for k in range(z.shape[1]):
                    value, derivative = scalar(z[j, k], b[j], theta)
                    out[k] += weight[j] * value if weight[j] != 0.0 else 0.0
                    z[j, k] = weight[j] * derivative if weight[j] != 0.0 else 0.0

    return kernel


@_scalar_kernel
def dense_pass(scalar, fingerprint):
    def kernel(A, x, offset, b, weight, theta, lo, hi, r, g, out):
        """z = A[lo:hi] @ x + offset;  r[lo:hi] = weight * derivative(z, b);  g += A[lo:hi].T @ r[lo:hi]: A is read once"""
        fingerprint  # noqa: B018 (part of the cache key)
        total, active = 0.0, np.empty(TILE, np.uint64)
        for first in range(lo, hi, TILE):
            last = min(first + TILE, hi)
            for j in range(first, last):
                row, z = A[j], offset
                for i in range(row.size):
                    z += row[i] * x[i]
                r[j] = z
            for j in range(first, last):
                value, derivative = scalar(r[j], b[j], theta)
                total += weight[j] * value if weight[j] != 0.0 else 0.0
                r[j] = weight[j] * derivative if weight[j] != 0.0 else 0.0
            # Samples with residual zero (right of the hinge) add nothing. The others in fours: g is read and written less.
            count = 0
            for j in range(first, last):
                active[count] = j
                count += r[j] != 0.0
            k = 0
            while k + 4 <= count:
                j0, j1, j2, j3 = active[k], active[k + 1], active[k + 2], active[k + 3]
                a0, a1, a2, a3 = A[j0], A[j1], A[j2], A[j3]
                r0, r1, r2, r3 = r[j0], r[j1], r[j2], r[j3]
                for i in range(a0.size):
                    g[i] += (r0 * a0[i] + r1 * a1[i]) + (r2 * a2[i] + r3 * a3[i])
                k += 4
            while k < count:
                row, residual = A[active[k]], r[active[k]]
                for i in range(row.size):
                    g[i] += residual * row[i]
                k += 1
        out[0] += total

    return kernel


@_scalar_kernel
def dense_pass_few(scalar, fingerprint):
    def kernel(A, x, offset, b, weight, theta, lo, hi, r, g, out):
        """The same for a few trajectories: x and g of shape (trajectories, features), r (samples, trajectories).

        Trajectories go in pairs or (of eta="auto") in threes, so that every number of A is loaded less often from the cache.
        """
        fingerprint  # noqa: B018 (part of the cache key)
        few = x.shape[0]
        paired = 0 if few == 3 else few - 1  # where pairs end
        for first in range(lo, hi, TILE):
            last = min(first + TILE, hi)
            for j in range(first, last):
                row = A[j]
                if few == 3:
                    x0, x1, x2, z0, z1, z2 = x[0], x[1], x[2], offset[0], offset[1], offset[2]
                    for i in range(row.size):
                        z0 += row[i] * x0[i]
                        z1 += row[i] * x1[i]
                        z2 += row[i] * x2[i]
                    r[j, 0], r[j, 1], r[j, 2] = z0, z1, z2
                for k in range(0, paired, 2):
                    x0, x1, z0, z1 = x[k], x[k + 1], offset[k], offset[k + 1]
                    for i in range(row.size):
                        z0 += row[i] * x0[i]
                        z1 += row[i] * x1[i]
                    r[j, k], r[j, k + 1] = z0, z1
                if few % 2 and few != 3:
                    x0, z0 = x[few - 1], offset[few - 1]
                    for i in range(row.size):
                        z0 += row[i] * x0[i]
                    r[j, few - 1] = z0
                for k in range(few):
                    value, derivative = scalar(r[j, k], b[j], theta)
                    out[k] += weight[j] * value if weight[j] != 0.0 else 0.0
                    r[j, k] = weight[j] * derivative if weight[j] != 0.0 else 0.0
            whole = last - (last - first) % 4
            for j in range(first, whole, 4):
                a0, a1, a2, a3 = A[j], A[j + 1], A[j + 2], A[j + 3]
                if few == 3:
                    g0, g1, g2 = g[0], g[1], g[2]
                    p0, p1, p2, p3 = r[j, 0], r[j + 1, 0], r[j + 2, 0], r[j + 3, 0]
                    q0, q1, q2, q3 = r[j, 1], r[j + 1, 1], r[j + 2, 1], r[j + 3, 1]
                    s0, s1, s2, s3 = r[j, 2], r[j + 1, 2], r[j + 2, 2], r[j + 3, 2]
                    for i in range(a0.size):
                        g0[i] += (p0 * a0[i] + p1 * a1[i]) + (p2 * a2[i] + p3 * a3[i])
                        g1[i] += (q0 * a0[i] + q1 * a1[i]) + (q2 * a2[i] + q3 * a3[i])
                        g2[i] += (s0 * a0[i] + s1 * a1[i]) + (s2 * a2[i] + s3 * a3[i])
                for k in range(0, paired, 2):
                    g0, g1 = g[k], g[k + 1]
                    p0, p1, p2, p3 = r[j, k], r[j + 1, k], r[j + 2, k], r[j + 3, k]
                    q0, q1, q2, q3 = r[j, k + 1], r[j + 1, k + 1], r[j + 2, k + 1], r[j + 3, k + 1]
                    for i in range(a0.size):
                        g0[i] += (p0 * a0[i] + p1 * a1[i]) + (p2 * a2[i] + p3 * a3[i])
                        g1[i] += (q0 * a0[i] + q1 * a1[i]) + (q2 * a2[i] + q3 * a3[i])
                if few % 2 and few != 3:
                    k = few - 1
                    g0, p0, p1, p2, p3 = g[k], r[j, k], r[j + 1, k], r[j + 2, k], r[j + 3, k]
                    for i in range(a0.size):
                        g0[i] += (p0 * a0[i] + p1 * a1[i]) + (p2 * a2[i] + p3 * a3[i])
            for j in range(whole, last):
                row = A[j]
                for k in range(few):
                    g0, residual = g[k], r[j, k]
                    for i in range(row.size):
                        g0[i] += residual * row[i]

    return kernel
