"""The best intercept when all coefficients are zero: predictions are one constant, and A is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg.block import residuals
from ..losses import LinearModel, Multinomial

SEARCH_END = 1e12  # where the search for a slope of the other sign ends


def best_intercept(loss: LinearModel) -> Any:
    """The minimiser over the intercept: a number, of the multinomial loss one per class; None if there is none."""
    weight = loss.weight.astype(np.float64)
    if isinstance(loss, Multinomial):
        share = np.bincount(loss.b, weights=weight, minlength=loss.classes)
        if (share == 0).any():
            return None
        offsets = np.log(share)
        return offsets - offsets.mean()
    b = loss.b.astype(np.float64)
    if loss.piecewise_linear:
        left, right = loss.slopes(b, loss.theta)
        return balance(b, left, right, weight)
    # Around the target nearest to the mean: exact if all are equal, and precise however large they are.
    center = (
        float(b[np.argmin(np.abs(b - np.einsum("i,i->", weight, b)))]) if loss.translates else 0.0
    )
    root = _root(lambda c: _slope(loss, c, b - center, weight))
    return None if root is None else center + root


def _slope(loss: LinearModel, c: float, b: np.ndarray, weight: np.ndarray) -> float:
    z = np.full(len(b), c)
    residuals(loss.scalar)(z, b, weight, loss.theta, 0, len(z), np.zeros(1))
    return float(z.sum())


def _root(slope: Any) -> float | None:
    """Where a nondecreasing function is zero."""
    from scipy.optimize import brentq

    if slope(0.0) == 0.0:
        return 0.0
    reach = 1.0
    while not slope(-reach) < 0 < slope(reach):
        reach *= 8.0
        if reach > SEARCH_END:
            return None
    return float(brentq(slope, -reach, reach, xtol=1e-15, rtol=1e-14))


def balance(kinks: np.ndarray, left: Any, right: Any, weight: np.ndarray) -> float | None:
    r"""The minimiser c of :math:`\sum_j w_j \max(l_j (c - k_j), r_j (c - k_j))`, the middle one if there are several.

    For the absolute loss it is a weighted median of the kinks. None if there is no minimiser.
    """
    used = weight > 0
    left, right = (
        np.broadcast_to(np.asarray(s, dtype=np.float64), kinks.shape)[used] * weight[used]
        for s in (left, right)
    )
    points, place = np.unique(kinks[used], return_inverse=True)
    first = left.sum()  # the slope before all kinks, and after each of them, ties being one
    slopes = first + np.cumsum(np.bincount(place.ravel(), weights=right - left))
    rounding = 1e-12 * (np.abs(left).sum() + np.abs(right).sum())
    if first > rounding or slopes[-1] < -rounding:
        return None
    k = int(np.argmax(slopes >= -rounding))
    flat = abs(slopes[k]) <= rounding and k + 1 < points.size  # up to the next kink
    return float(0.5 * (points[k] + points[k + 1]) if flat else points[k])
