"""The metric: sums of squares per block, the forward step, and what completes an iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._compile import compiled, plain


@compiled
def add_squared_differences(total: Any, g: Any, g_prev: Any) -> None:
    """total += (g - g_prev)**2"""
    for i in range(total.size):
        change = np.float64(g[i]) - g_prev[i]
        total[i] += change * change


@plain
def add_block_squares(total: Any, labels: Any, g: Any) -> None:
    """np.add.at(total, labels, g**2)"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(g.shape[1]):
            total[block, k] += np.float64(g[i, k]) * g[i, k]


@plain
def add_block_squared_differences(total: Any, labels: Any, g: Any, g_prev: Any) -> None:
    """np.add.at(total, labels, (g - g_prev)**2)"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(g.shape[1]):
            change = np.float64(g[i, k]) - g_prev[i, k]
            total[block, k] += change * change


@plain
def overflow(g: Any) -> float:
    """np.sum(0 * g**2) in double precision: zero, or NaN where a square is not finite"""
    bad = 0
    for i in range(g.size):
        bad += not np.float64(g[i]) * g[i] < np.inf  # also where it is NaN
    return np.nan if bad else 0.0


@compiled
def forward(
    total: Any, eps: Any, eta: Any, scale: Any, x: Any, g: Any, step: Any, out: Any
) -> None:
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


@compiled
def metric_update(
    previous: Any,
    total: Any,
    eps: Any,
    eta: Any,
    scale: Any,
    x: Any,
    g: Any,
    new_total: Any,
    step: Any,
    point: Any,
) -> None:
    """new_total = total + (g - previous)**2;  step = eta * scale[:, None] / (eps + np.sqrt(new_total));  point = x - step * g

    Arrays are (d,) or (d, B), eta is (1,) or (B,), scale is of size 1 or d. `previous` may be None, for zero.
    """
    if total.ndim == 1:
        for i in range(total.size):
            change = g[i] if previous is None else g[i] - previous[i]
            new_total[i] = total[i] + change * change
            step[i] = eta[0] * scale[i if scale.size > 1 else 0] / (eps + np.sqrt(new_total[i]))
            point[i] = x[i] - step[i] * g[i]
    else:
        for i in range(total.shape[0]):
            factor = scale[i if scale.size > 1 else 0]
            for k in range(total.shape[1]):
                change = g[i, k] if previous is None else g[i, k] - previous[i, k]
                new_total[i, k] = total[i, k] + change * change
                step[i, k] = eta[k] * factor / (eps + np.sqrt(new_total[i, k]))
                point[i, k] = x[i, k] - step[i, k] * g[i, k]


@plain
def block_forward(
    total: Any, labels: Any, eps: Any, eta: Any, scale: Any, x: Any, g: Any, step: Any, out: Any
) -> None:
    """step = eta * scale[:, None] / (eps + np.sqrt(total[labels]));  out = x - step * g"""
    for i in range(labels.size):
        block, factor = np.uint64(labels[i]), scale[i if scale.size > 1 else 0]
        for k in range(total.shape[1]):
            step[i, k] = eta[k] * factor / (eps + np.sqrt(total[block, k]))
            out[i, k] = x[i, k] - step[i, k] * g[i, k]


@plain
def advance(
    f: Any,
    phi: Any,
    x_new: Any,
    g_new: Any,
    f_old: Any,
    phi_old: Any,
    x: Any,
    g: Any,
    n: Any,
    failed: Any,
    norm: Any,
    fun_best: Any,
    x_sum: Any,
    x_best: Any,
) -> None:
    """Trajectories whose new values are not finite, or whose gradient has a square that is not, fail; the others go on.

    failed |= ~np.isfinite(f + phi + np.sum(0 * g_new**2, axis=0)); what is new is replaced by what is old where failed;
    n += ~failed, norm = NaN there; fun_best, x_best and x_sum take the new iterate in. x_sum and x_best may be None.
    """
    columns = x.shape[1]
    bad = np.zeros(columns, np.int64)
    for i in range(x.shape[0]):
        for k in range(columns):
            bad[k] += not np.float64(g_new[i, k]) * g_new[i, k] < np.inf  # also where it is NaN
    better, stuck = np.zeros(columns, np.bool_), False
    for k in range(columns):
        fun = f[k] + phi[k]
        if bad[k] or not abs(fun) < np.inf:
            failed[k] = True
        if failed[k]:
            stuck = True
            f[k], phi[k] = f_old[k], phi_old[k]
        else:
            n[k] += 1
            norm[k] = np.nan
            if fun < fun_best[k]:
                better[k], fun_best[k] = True, fun
    if stuck:
        for i in range(x.shape[0]):
            for k in range(columns):
                if failed[k]:
                    x_new[i, k], g_new[i, k] = x[i, k], g[i, k]
    if x_sum is not None:
        for i in range(x.shape[0]):
            for k in range(columns):
                x_sum[i, k] += 0.0 if failed[k] else x_new[i, k]
                x_best[i, k] = x_new[i, k] if better[k] else x_best[i, k]


@compiled
def diagnose(x_prev: Any, x: Any, step: Any, g_prev: Any, g: Any, scale: Any, out: Any) -> None:
    """out = np.sum((scale * ((x_prev - x) / step + g - g_prev))**2, axis=0), np.mean(step, axis=0); scale as in `forward`

    A g_prev whose step is too small to change x_prev counts as zero, as in `forward`: that x stands still proves nothing.
    """
    half, zero = (
        x.dtype.type(np.finfo(x.dtype).eps / 2),
        x.dtype.type(0),
    )  # a smaller part of x_prev may be lost
    if x.ndim == 1:
        squares, steps = 0.0, 0.0
        for i in range(x.size):
            before = zero if abs(step[i] * g_prev[i]) < half * abs(x_prev[i]) else g_prev[i]
            u = scale[i if scale.size > 1 else 0] * ((x_prev[i] - x[i]) / step[i] + (g[i] - before))
            squares += np.float64(u) * u
            steps += step[i]
        out[0, 0] = squares
        out[1, 0] = steps / x.size
    else:
        out[:] = 0
        for i in range(x.shape[0]):
            factor = scale[i if scale.size > 1 else 0]
            for k in range(x.shape[1]):
                before = (
                    zero
                    if abs(step[i, k] * g_prev[i, k]) < half * abs(x_prev[i, k])
                    else g_prev[i, k]
                )
                u = factor * ((x_prev[i, k] - x[i, k]) / step[i, k] + (g[i, k] - before))
                out[0, k] += np.float64(u) * u
                out[1, k] += step[i, k]
        out[1] /= x.shape[0]
