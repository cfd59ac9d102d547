"""Proximal operators that are one number away from a formula: a threshold, or a norm, found by Newton's method.

Both equations are solved from the left, where Newton's method cannot overshoot: a convex decreasing and a concave
increasing function lie on the side of their tangents that keeps every iterate short of the root.

A kernel that calls a root finder lives in this file, whichever penalty it belongs to: Numba's disk cache of a kernel does
not notice when a function in another file is edited.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..linalg.kernels import compiled
from ._sizes import LEAST_MODERATE, MOST_MODERATE, Rows

EXACT = 1e-12  # a point of a set that misses its boundary by no more than this, relatively, is left as it is
EXACT_FLOAT32 = 1e-6
NEGLIGIBLE = (
    1e-300  # beside moderate numbers, as good as zero, but not divided by with an infinite result
)
ROOT_SAMPLE = 32  # of a long vector, one coordinate in so many is looked at first


def by_rows(solve: Rows, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
    """Solve for each trajectory, in the dtype of z and with the result where z may be.

    Each trajectory becomes a contiguous row: passes over a strided column are slow.
    """
    rows, steps = (np.ascontiguousarray(np.atleast_2d(array.T)) for array in (z, step))
    result = np.atleast_2d(out.T)
    if result.flags.c_contiguous:
        solve(rows, steps, result)
    else:
        buffer = np.empty_like(rows)
        solve(rows, steps, buffer)
        np.copyto(result, buffer)


def exact(z: np.ndarray) -> float:
    """How closely a point of z's dtype can be expected to lie on the boundary of a set."""
    return EXACT_FLOAT32 if z.dtype == np.float32 else EXACT


# ---------------------------------------------------------------- thresholds


@compiled
def hinge_root(a: Any, b: Any, target: Any) -> Any:
    """The tau with sum(max(a - b tau, 0)) = target, for b > 0 and target > 0. The vectors a and b are overwritten.

    Newton's method, from where one term alone, or all together if none were cut at 0, reach the target. A term that has
    become zero stays so: it is dropped, which ends the loop after at most a.size passes. Each pass divides (the excess over
    the target) times (the slope) by at least four, so that there are few.
    """
    total, slope, single = 0.0, 0.0, -np.inf
    for i in range(a.size):
        total += a[i]
        slope += b[i]
        alone = (a[i] - target) / b[i]
        single = alone if alone > single else single
    tau = (total - target) / slope
    tau = single if single > tau else tau
    count = a.size
    while True:
        kept = 0
        for i in range(count):
            ai, bi = a[i], b[i]
            a[kept], b[kept] = ai, bi
            kept += ai > bi * tau
        if kept == 0:  # rounding, or NaN
            return tau
        total, slope = 0.0, 0.0
        for i in range(kept):
            total += a[i]
            slope += b[i]
        tau = (total - target) / slope
        if kept == count:
            return tau
        count = kept


@compiled
def simplex_rows(z: Any, step: Any, radius: Any, signed: Any, close: Any, out: Any) -> None:
    """out = max(z - step tau, 0) with sum(out) = radius; or, if signed, the same for |z|, unless sum(|z|) <= radius"""
    d = z.shape[1]
    v, a, b = np.empty(d), np.empty(d), np.empty(d)
    for row in range(z.shape[0]):
        total, lowest = 0.0, 0.0
        for i in range(d):
            v[i] = abs(z[row, i]) if signed else z[row, i]
            total += v[i]
            lowest = min(lowest, v[i])
        if total <= radius * (1.0 + close) and (
            signed or (lowest >= 0.0 and total >= radius * (1.0 - close))
        ):
            out[row] = z[row]
            continue
        if radius == 0.0:
            for i in range(d):
                out[row, i] = 0.0 * z[row, i]  # not just 0: NaN must survive
            continue
        # v <- v - step tau does not change the solution, but makes it the more accurate the closer v is to it: where z is
        # large beside the radius, the sum is right only the second time; where it is huge, later.
        for _ in range(64):
            for i in range(d):
                a[i] = v[i]
                b[i] = step[row, i]
            tau = hinge_root(a, b, radius)
            total = 0.0
            for i in range(d):
                v[i] -= step[row, i] * tau
                total += max(v[i], 0.0)
            if not abs(total - radius) > 0.1 * EXACT * radius:
                break
        for i in range(d):
            size = 0.0 if v[i] < 0.0 else v[i]
            out[row, i] = np.copysign(size, z[row, i]) if signed else size


@compiled
def linf_rows(z: Any, step: Any, lam: Any, out: Any) -> None:
    """out = sign(z) min(|z|, t) with sum(max(|z| - t, 0) / step) = lam, or t = 0 if that sum is below lam for all t >= 0"""
    d = z.shape[1]
    a, b = np.empty(d), np.empty(d)
    for row in range(z.shape[0]):
        if lam == 0.0:
            out[row] = z[row]
            continue
        for i in range(d):
            b[i] = 1.0 / step[row, i]
            a[i] = abs(z[row, i]) * b[i]
        t = hinge_root(a, b, lam)
        t = 0.0 if t < 0.0 else t
        for i in range(d):
            size = abs(z[row, i])
            out[row, i] = np.copysign(size if size <= t else t, z[row, i])


# ---------------------------------------------------------------- norms


@compiled(small="python")
def secular_newton(c: Any, a: Any, size: Any, guess: Any) -> Any:
    """See `secular_root`. The guess may be on either side of the root; one step from its right leads to its left."""
    low, least = 0.0, np.inf
    for i in range(size):
        low = max(low, abs(c[i]) - a[i])  # where one term alone is 1: not right of the root
        least = min(least, a[i])
    h = max(low, guess)
    for k in range(200):
        square, slope = 0.0, 0.0
        for i in range(size):
            inverse = 1.0 / (h + a[i])
            term = c[i] * inverse
            square += term * term
            slope += term * term * inverse
        excess = np.sqrt(square) - 1.0
        if np.isnan(excess):
            return excess
        if excess <= 1e-14 and (k > 0 or h == low):
            break
        step = excess * square / slope
        # After the step the excess is at most 1.5 excess**2 * max(1 / (h + a)) / mean(1 / (h + a)), with c-weights.
        if abs(excess * step) <= 1e-14 * (h + least):
            return max(low, h + step)
        h = max(low, h + step)
    return h


@compiled(small="python")
def secular_root(c: Any, a: Any, size: Any) -> Any:
    """The h > 0 with sum((c / (h + a))**2) = 1 over the first `size` entries, for a > 0; 0 if there is none.

    Newton's method for 1 / norm(c / (h + a)) = 1, as `group_root` states it; here for vectors of any length.
    """
    if size < 64 * ROOT_SAMPLE:
        return secular_newton(c, a, size, 0.0)
    # A sample of the terms, weighted to make up for the others, shows where to start.
    count = size // ROOT_SAMPLE
    some_c, some_a = np.empty(count), np.empty(count)
    for i in range(count):
        some_c[i], some_a[i] = c[ROOT_SAMPLE * i] * np.sqrt(ROOT_SAMPLE), a[ROOT_SAMPLE * i]
    return secular_newton(c, a, size, secular_newton(some_c, some_a, count, 0.0))


@compiled(small="python")
def power_of_two(size: Any) -> Any:
    """What to multiply numbers of this size by, so that their squares neither overflow nor vanish; 1 if they do not"""
    if LEAST_MODERATE < size < MOST_MODERATE or not 0.0 < size < np.inf:
        return 1.0
    return math.ldexp(1.0, min(-math.frexp(size)[1], 1000))


@compiled(small="python")
def shrink_norm(z: Any, step: Any, size: Any, lam: Any) -> None:
    """z <- the prox of lam norm(.) at z, for the first `size` entries; those of z and step are overwritten"""
    if lam == 0.0:
        return
    if size == 1:
        rest = abs(z[0]) - lam * step[0]
        z[0] = np.copysign(0.0 if rest < 0.0 else rest, z[0])
        return
    square, equal = 0.0, True
    for i in range(size):
        square += z[i] * z[i]
        equal &= step[i] == step[0]
    factor = 1.0
    if not LEAST_MODERATE < square < MOST_MODERATE:
        largest = 0.0
        for i in range(size):
            largest = max(largest, abs(z[i]))
        factor, square = power_of_two(largest), 0.0
        for i in range(size):
            z[i] *= factor
            square += z[i] * z[i]
    if equal:
        norm, threshold = np.sqrt(square), lam * step[0] * factor
        part = 0.0 if norm <= threshold else 1.0 - threshold / norm
        for i in range(size):
            z[i] *= part
    else:
        for i in range(size):
            step[i] = max(lam * step[i] * factor, NEGLIGIBLE)
        h = secular_root(z, step, size)
        for i in range(size):
            z[i] *= h / (h + step[i])
    if factor != 1.0:
        for i in range(size):
            z[i] /= factor


@compiled(small="python")
def l2_rows(z: Any, step: Any, lam: Any, out: Any) -> None:
    """out = the prox of lam norm(.) at z"""
    d = z.shape[1]
    point, steps = np.empty(d), np.empty(d)
    for row in range(z.shape[0]):
        for i in range(d):
            point[i], steps[i] = z[row, i], step[row, i]
        shrink_norm(point, steps, d, lam)
        for i in range(d):
            out[row, i] = point[i]


@compiled(small="python")
def group_rows(
    z: Any, step: Any, l1: float, strength: Any, order: Any, starts: Any, out: Any
) -> None:
    """out = the prox of sum over g of strength[g] norm(.[order[starts[g]:starts[g + 1]]]) at soft(z, l1 step)"""
    point, steps = np.empty(z.shape[1]), np.empty(z.shape[1])
    for row in range(z.shape[0]):
        for g in range(strength.size):
            first, size = np.uint64(starts[g]), starts[g + 1] - starts[g]
            for i in range(size):
                place = np.uint64(order[first + np.uint64(i)])
                steps[i] = step[row, place]
                rest = abs(z[row, place]) - l1 * steps[i]
                point[i] = np.copysign(0.0 if rest < 0.0 else rest, z[row, place])
            shrink_norm(point, steps, size, strength[g])
            for i in range(size):
                out[row, np.uint64(order[first + np.uint64(i)])] = point[i]


@compiled
def l2_ball_rows(z: Any, step: Any, radius: Any, close: Any, out: Any) -> None:
    """out = z / (1 + step mu) with norm(out) = radius, or z if norm(z) <= radius"""
    d = z.shape[1]
    c, a = np.empty(d), np.empty(d)
    for row in range(z.shape[0]):
        square, equal = 0.0, True
        for i in range(d):
            square += np.float64(z[row, i]) * z[row, i]
            equal &= step[row, i] == step[row, 0]
        norm = np.sqrt(square)
        if norm <= radius * (1.0 + close):
            out[row] = z[row]
        elif equal or radius == 0.0:
            for i in range(d):
                out[row, i] = z[row, i] * (radius / norm)
        else:
            for i in range(d):
                a[i] = 1.0 / step[row, i]
                c[i] = z[row, i] * a[i]
                a[i] *= radius
            h = secular_root(c, a, d)  # radius times mu
            for i in range(d):
                out[row, i] = radius * (c[i] / (h + a[i]))
