"""FISTA's passes over points y, x and gradients at y: (d, B); whether a trajectory looks, or has moved: (B,)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._compile import plain


@plain
def look_or_step(length: Any, looks: Any, y: Any, g: Any, step: Any, out: Any) -> None:
    """step = length;  out = np.where(looks, y, y - length * g)"""
    for i in range(y.shape[0]):
        for k in range(y.shape[1]):
            step[i, k] = length[k]
            out[i, k] = y[i, k] - (0.0 if looks[k] else length[k] * g[i, k])


@plain
def model_products(y: Any, g: Any, x: Any, x_next: Any, g_next: Any, out: Any) -> None:
    """a = x_next - y;  out = the sums over coordinates of g * a, a * a, -a * (x_next - x) and g_next**2"""
    out[:] = 0.0
    for i in range(y.shape[0]):
        for k in range(y.shape[1]):
            a = x_next[i, k] - y[i, k]
            out[0, k] += g[i, k] * a
            out[1, k] += a * a
            out[2, k] -= a * (np.float64(x_next[i, k]) - x[i, k])
            out[3, k] += np.float64(g_next[i, k]) * g_next[i, k]


@plain
def extrapolate(
    y: Any, g: Any, moved: Any, seen: Any, lost: Any, momentum: Any, x: Any, g_x: Any, x_next: Any, g_next: Any
) -> None:
    """y = x_next + momentum * (x_next - x) where moved;  g = g_next where seen;  y = x and g = g_x where lost"""
    for i in range(y.shape[0]):
        for k in range(y.shape[1]):
            if lost[k]:
                y[i, k], g[i, k] = x[i, k], g_x[i, k]
            if moved[k]:
                y[i, k] = x_next[i, k] + momentum[k] * (np.float64(x_next[i, k]) - x[i, k])
            if seen[k]:
                g[i, k] = g_next[i, k]
