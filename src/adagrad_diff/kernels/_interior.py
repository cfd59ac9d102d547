"""The steps of an interior point method, row by row (see `finishing/interior.py` for the names)."""

from __future__ import annotations

from typing import Any

from ._compile import plain


@plain
def interior_weights(s: Any, t: Any, z: Any, v: Any, residual: Any, width: Any, D: Any) -> Any:
    """D = 1 / (z / s + v / t); returns s @ z + t @ v, np.abs(residual - v + z) @ width"""
    product = missed = 0.0
    for k in range(s.size):
        D[k] = 1.0 / (z[k] / s[k] + v[k] / t[k])
        product += s[k] * z[k] + t[k] * v[k]
        missed += abs(residual[k] - v[k] + z[k]) * width[k]
    return product, missed


@plain
def interior_pull(s: Any, t: Any, residual: Any, D: Any, aim_s: Any, aim_t: Any, pull: Any) -> None:
    """pull = D * (aim_t / t - aim_s / s - residual)"""
    for k in range(s.size):
        pull[k] = D[k] * (aim_t[k] / t[k] - aim_s[k] / s[k] - residual[k])


@plain
def interior_direction(
    s: Any, t: Any, z: Any, v: Any, has_low: Any, has_high: Any, dr: Any, aim_s: Any, aim_t: Any, dz: Any, dv: Any
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
