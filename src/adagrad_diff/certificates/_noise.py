"""How precisely an iteration knows its objective: a gap is no smaller than that."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import LinearModel
from ._rounding import factor

SAFETY = 2.0  # errors of other iterates than the one looked at are alike, not equal


def noise(dual: Any, x: np.ndarray, r: np.ndarray | None) -> float:
    """Of a linear model, near x with residuals r (None: as large as they can be).

    In double precision a bound from the sizes of the terms: predictions are off by d eps, and a slope multiplies that; the sum
    of the losses l = u z - l*(u) by N eps. In single precision such a bound would be useless, as it counts the terms: errors of
    the predictions are measured.
    """
    loss: LinearModel = dual.loss
    part, offset = (x[:-1], x[-1]) if loss.intercept else (x, np.zeros(1))
    part, offset = part.astype(np.float64).reshape(-1), np.atleast_1d(offset)
    slope = max(-float(dual.low.min()), float(dual.high.max())) if dual.kinked else dual.steepest
    slopes = slope * dual.weight if r is None else np.abs(r).reshape(len(dual.weight), -1).max(axis=1)
    targets = np.abs(dual.b).reshape(len(slopes), -1).max(axis=1)
    spread = float(dual.sizes @ np.abs(part))
    predictions = slope * spread + float(np.abs(offset).max() * slopes.sum() + np.einsum("i,i->", slopes, targets))
    losses = slope * (spread + float(np.abs(offset - dual.center).sum()) + dual.spread) + dual.terms
    phi = float(dual.penalty.value(part))
    bound = dual.coarse * predictions + dual.rounding * losses + (factor(part.size) * abs(phi) if np.isfinite(phi) else 0.0)
    return bound + (_measured(dual, x, r, slope) if dual.single else 0.0)


def _measured(dual: Any, x: np.ndarray, r: np.ndarray | None, slope: float) -> float:
    """sum_j |slope| |error of z_j|, predictions in single precision being compared with those in double precision."""
    loss, total = dual.loss, 0.0
    eps, features = float(np.finfo(loss.dtype).eps), loss.A.shape[1]
    for lo, hi in loss.A.row_blocks(0, loss.A.shape[0]):
        z, rounded = (_predictions(loss, x.astype(dtype), features, lo, hi) for dtype in (np.float64, loss.dtype))
        b, weight = np.abs(dual.b[lo:hi]), dual.weight[lo:hi].reshape(-1, *(1,) * (z.ndim - 1))
        error = np.abs(z - rounded) + eps * (np.abs(z) + (b if loss.translates else 1.0))
        slopes = weight * slope if r is None else np.abs(r[lo:hi])
        total += float(np.sum((slopes if loss.translates else slopes + weight * b) * error, dtype=np.float64))
    return SAFETY * total


def _predictions(loss: LinearModel, x: np.ndarray, features: int, lo: int, hi: int) -> np.ndarray:
    z = np.empty((hi - lo, *x.shape[1:]), x.dtype)
    loss.A.dot(x[:features], lo, hi, z)
    return z + x[-1] if loss.intercept else z
