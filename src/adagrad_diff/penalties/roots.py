"""Proximal operators that are one number away from a formula: a threshold or a norm, found by Newton's method.

Both equations are solved from the left, where Newton's method cannot overshoot: a convex decreasing and a concave
increasing function lie on the side of their tangents that keeps every iterate short of the root.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg.compiling import compiled

ON_BOUNDARY = (
    1e-12  # a point this close to the boundary of a set, relative to its size, is left alone
)
ON_BOUNDARY_FLOAT32 = 1e-6
ACCURACY = 1e-13  # relative error of a sum, and 1e-2 times that of a norm
NEWTON_STEPS = 200  # at most; about 8 are usual


def close(z: np.ndarray) -> float:
    """Return how closely a point of z's dtype can be expected to lie on the boundary of a set."""
    return ON_BOUNDARY_FLOAT32 if z.dtype == np.float32 else ON_BOUNDARY


@compiled(small="python")
def thresholds(v: Any, step: Any, target: float, tau: Any) -> None:
    """v = max(v - step * tau, 0), where tau makes each row sum to target > 0

    It starts where one term alone, or all of them, would reach the target. It works on v - step tau
    instead of tau, so that the rounding errors of a large v do not remain in the sum.
    """
    for k in range(v.shape[0]):
        total, slope, change = -target, 0.0, -np.inf
        for i in range(v.shape[1]):
            change = max(change, (v[k, i] - target) / step[k, i])
            total += v[k, i]
            slope += step[k, i]
        change, tau[k] = max(change, total / slope), 0.0
        for _ in range(NEWTON_STEPS):
            tau[k] += change
            total, slope, single = -target, 0.0, -np.inf
            for i in range(v.shape[1]):
                v[k, i] -= step[k, i] * change
                positive = v[k, i] > 0.0
                total += v[k, i] if positive else 0.0
                slope += step[k, i] if positive else 0.0
            if not abs(total) > ACCURACY * target:
                break
            if slope == 0.0:  # rounding has left no positive term
                for i in range(v.shape[1]):
                    single = max(single, (v[k, i] - target) / step[k, i])
            change = total / slope if slope > 0.0 else single
        for i in range(v.shape[1]):
            v[k, i] = max(v[k, i], 0.0)


@compiled(small="python")
def norms(z: Any, a: Any, starts: Any, h: Any) -> None:
    """h > 0 with sum((z / (h + a))**2) = 1 over each group of each row, or 0 if there is none

    Group g has the places starts[g] to starts[g + 1]. `group_root` is the statement of the method.
    """
    for k in range(z.shape[0]):
        for g in range(h.shape[1]):
            root = 0.0
            for i in range(starts[g], starts[g + 1]):
                root = max(root, abs(z[k, i]) - a[k, i])
            for _ in range(NEWTON_STEPS):
                square, slope = 0.0, 0.0
                for i in range(starts[g], starts[g + 1]):
                    if z[k, i] != 0.0:
                        inverse = 1.0 / (root + a[k, i])
                        term = z[k, i] * inverse
                        square += term * term
                        slope += term * term * inverse
                if not square > 1.0:
                    break
                change = square * (np.sqrt(square) - 1.0) / slope
                root += change
                if not change > 0.01 * ACCURACY * root:
                    break
            h[k, g] = root
