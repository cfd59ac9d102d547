"""The steps of an interior point method, row by row (see `polishing/interior.py` for the names)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import compiled, plain


def _weights(s: Any, t: Any, z: Any, v: Any, residual: Any, width: Any, D: Any) -> Any:
    D[:] = 1.0 / (z / s + v / t)
    return s @ z + t @ v, np.abs(residual - v + z) @ width


@plain(small=_weights)
def interior_weights(s: Any, t: Any, z: Any, v: Any, residual: Any, width: Any, D: Any) -> Any:
    """D = 1 / (z / s + v / t); returns s @ z + t @ v, np.abs(residual - v + z) @ width"""
    product = missed = 0.0
    for k in range(s.size):
        D[k] = 1.0 / (z[k] / s[k] + v[k] / t[k])
        product += s[k] * z[k] + t[k] * v[k]
        missed += abs(residual[k] - v[k] + z[k]) * width[k]
    return product, missed


def _pull(s: Any, t: Any, residual: Any, D: Any, aim_s: Any, aim_t: Any, pull: Any) -> None:
    pull[:] = D * (aim_t / t - aim_s / s - residual)


@plain(small=_pull)
def interior_pull(s: Any, t: Any, residual: Any, D: Any, aim_s: Any, aim_t: Any, pull: Any) -> None:
    """pull = D * (aim_t / t - aim_s / s - residual)"""
    for k in range(s.size):
        pull[k] = D[k] * (aim_t[k] / t[k] - aim_s[k] / s[k] - residual[k])


def _direction(
    s: Any,
    t: Any,
    z: Any,
    v: Any,
    has_low: Any,
    has_high: Any,
    dr: Any,
    aim_s: Any,
    aim_t: Any,
    dz: Any,
    dv: Any,
) -> Any:
    dz[:] = has_low * ((aim_s - z * dr) / s - z)
    dv[:] = has_high * ((aim_t + v * dr) / t - v)
    low, high = has_low > 0.0, has_high > 0.0
    dual = max(np.max(-dr / s, where=low, initial=1.0), np.max(dr / t, where=high, initial=1.0))
    primal = max(np.max(-dz / z, where=low, initial=1.0), np.max(-dv / v, where=high, initial=1.0))
    dual, primal = 1.0 / dual, 1.0 / primal
    reached = (s + dual * has_low * dr) @ (z + primal * dz)
    return dual, primal, reached + (t - dual * has_high * dr) @ (v + primal * dv)


@plain(small=_direction)
def interior_direction(
    s: Any,
    t: Any,
    z: Any,
    v: Any,
    has_low: Any,
    has_high: Any,
    dr: Any,
    aim_s: Any,
    aim_t: Any,
    dz: Any,
    dv: Any,
) -> Any:
    """dz = has_low * ((aim_s - z * dr) / s - z), dv = has_high * ((aim_t + v * dr) / t - v)

    Returns the longest steps up to 1 for which s + a dr and t - a dr, z + a dz and v + a dv stay positive (where they are
    there), and what s @ z + t @ v is then.
    """
    dual = primal = 1.0
    for k in range(s.size):
        dz[k] = has_low[k] * ((aim_s[k] - z[k] * dr[k]) / s[k] - z[k])
        dv[k] = has_high[k] * ((aim_t[k] + v[k] * dr[k]) / t[k] - v[k])
        if has_low[k] > 0.0:
            dual, primal = max(dual, -dr[k] / s[k]), max(primal, -dz[k] / z[k])
        if has_high[k] > 0.0:
            dual, primal = max(dual, dr[k] / t[k]), max(primal, -dv[k] / v[k])
    dual, primal, reached = 1.0 / dual, 1.0 / primal, 0.0
    for k in range(s.size):
        reached += (s[k] + dual * has_low[k] * dr[k]) * (z[k] + primal * dz[k])
        reached += (t[k] - dual * has_high[k] * dr[k]) * (v[k] + primal * dv[k])
    return dual, primal, reached


def _add_gram(A: Any, D: Any, lo: Any, hi: Any, G: Any) -> None:
    G += A[lo:hi].T @ (D[lo:hi, None] * A[lo:hi])


@compiled(small=_add_gram)
def add_gram(A: Any, D: Any, lo: Any, hi: Any, G: Any) -> None:
    """G += A[lo:hi].T @ np.diag(D[lo:hi]) @ A[lo:hi], its upper triangle; eight rows at a time"""
    columns, j = A.shape[1], lo
    while j + 8 <= hi:
        for i in range(columns):
            a0, a1, a2, a3 = (
                D[j] * A[j, i],
                D[j + 1] * A[j + 1, i],
                D[j + 2] * A[j + 2, i],
                D[j + 3] * A[j + 3, i],
            )
            a4, a5, a6, a7 = (
                D[j + 4] * A[j + 4, i],
                D[j + 5] * A[j + 5, i],
                D[j + 6] * A[j + 6, i],
                D[j + 7] * A[j + 7, i],
            )
            for k in range(i, columns):
                first = (a0 * A[j, k] + a1 * A[j + 1, k]) + (a2 * A[j + 2, k] + a3 * A[j + 3, k])
                G[i, k] += first + (
                    (a4 * A[j + 4, k] + a5 * A[j + 5, k]) + (a6 * A[j + 6, k] + a7 * A[j + 7, k])
                )
        j += 8
    while j < hi:
        for i in range(columns):
            a = D[j] * A[j, i]
            for k in range(i, columns):
                G[i, k] += a * A[j, k]
        j += 1
