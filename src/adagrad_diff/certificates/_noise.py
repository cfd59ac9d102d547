"""How precisely an iteration knows its objective: a gap is no smaller than that."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import LinearModel
from ._rounding import factor, largest

SAFETY = 2.0  # errors of other iterates than the one looked at are alike, not equal


def noise(dual: Any, x: np.ndarray, r: np.ndarray | None) -> float:
    """Of a linear model, near x with residuals r (None: as large as they can be).

    In double precision a bound from the sizes of the terms: predictions are off by d eps, and a slope multiplies that; the sum
    of the losses l = u z - l*(u) by N eps. In single precision such a bound would be useless, as it counts the terms: errors of
    the predictions are measured.
    """
    loss: LinearModel = dual.loss
    part, offset = (x[:-1], x[-1]) if loss.intercept else (x, 0.0)
    part, offset, shift = part.astype(np.float64).reshape(-1), largest(offset), largest(offset - dual.center)
    slope = max(-float(dual.low.min()), float(dual.high.max())) if dual.kinked else dual.steepest
    if r is None or dual.kinked:  # at a kink, a slope of zero says nothing about the neighbourhood
        slopes = np.full(dual.b.shape, slope) * dual.weight.reshape(-1, *(1,) * (dual.b.ndim - 1))
    else:
        slopes = np.abs(r)
    spread, curvature, eps = float(dual.sizes @ np.abs(part)), loss.smoothness or 1.0, float(np.finfo(loss.dtype).eps)
    losses = slope * (spread + shift + dual.spread) + dual.terms
    phi = float(dual.penalty.value(part))
    bound = (dual.rounding + 8.0 * eps) * losses + (factor(part.size) * abs(phi) if phi < np.inf else 0.0)
    if not part.any():
        return bound  # predictions are the intercept
    if dual.single:
        return bound + _measured(dual, x, slopes, curvature)
    first = slope * spread + offset * float(slopes.sum()) + float(np.sum(slopes * np.abs(dual.b)))
    reach = spread + offset + dual.typical
    second = len(slopes) * curvature * dual.coarse * reach * reach  # where slopes are zero
    return bound + dual.coarse * (first + second)


def _measured(dual: Any, x: np.ndarray, slopes: np.ndarray, curvature: float) -> float:
    """sum_j |slope| |error of z_j|, predictions in single precision being compared with those in double precision."""
    loss, total = dual.loss, 0.0
    eps, features = float(np.finfo(loss.dtype).eps), loss.A.shape[1]
    for lo, hi in loss.A.row_blocks(0, loss.A.shape[0]):
        z, rounded = (_predictions(loss, x.astype(dtype), features, lo, hi) for dtype in (np.float64, loss.dtype))
        b, weight = np.abs(dual.b[lo:hi]), dual.weight[lo:hi].reshape(-1, *(1,) * (z.ndim - 1))
        error = np.abs(z - rounded) + eps * (np.abs(z) + (b if loss.translates else 1.0))
        steepness = slopes[lo:hi] + weight * (curvature * error + (0.0 if loss.translates else b))
        total += float(np.sum(steepness * error, dtype=np.float64))
    return SAFETY * total


def _predictions(loss: LinearModel, x: np.ndarray, features: int, lo: int, hi: int) -> np.ndarray:
    z = np.empty((hi - lo, *x.shape[1:]), x.dtype)
    loss.A.dot(x[:features], lo, hi, z)
    return z + x[-1] if loss.intercept else z
