"""How precisely an iteration knows its objective: a gap is no smaller than that."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg import Block
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
    part, offset, shift = (
        part.astype(np.float64).reshape(-1),
        largest(offset),
        largest(offset - dual.center),
    )
    slope = max(-float(dual.low.min()), float(dual.high.max())) if dual.kinked else dual.steepest
    if r is None or dual.kinked:  # at a kink, a slope of zero says nothing about the neighbourhood
        slopes = np.full(dual.b.shape, slope) * dual.weight.reshape(-1, *(1,) * (dual.b.ndim - 1))
    else:
        slopes = np.abs(r)
    spread, curvature, eps = (
        float(dual.sizes @ np.abs(part)),
        loss.smoothness or 1.0,
        float(np.finfo(loss.dtype).eps),
    )
    losses = slope * (spread + shift + dual.spread) + dual.terms
    phi = float(dual.penalty.value(part))
    bound: float = (dual.rounding + 8.0 * eps) * losses + (
        factor(part.size) * abs(phi) if phi < np.inf else 0.0
    )
    if not part.any():
        return bound  # predictions are the intercept
    if dual.single:
        return bound + _measured(dual, x, slopes, curvature)
    first = slope * spread + offset * float(slopes.sum()) + float(np.sum(slopes * np.abs(dual.b)))
    size = spread + offset + dual.typical
    second = (
        len(slopes) * curvature * dual.coarse * size * size
    )  # where slopes are zero (** would raise an OverflowError)
    return bound + float(dual.coarse * (first + second))


def _measured(dual: Any, x: np.ndarray, slopes: np.ndarray, curvature: float) -> float:
    """sum_j |slope| |error of z_j|, predictions in single precision being compared with those in double precision."""
    loss = dual.loss
    samples = slopes, dual.b, dual.weight
    return SAFETY * float(
        loss.A.fold(_error, x, curvature, loss.intercept, loss.translates, along=samples)
    )


def _error(
    block: Block,
    slopes: np.ndarray,
    b: np.ndarray,
    weight: np.ndarray,
    x: np.ndarray,
    curvature: float,
    intercept: bool,
    translates: bool,
) -> float:
    """That of one block."""
    z, rounded = (
        _predictions(block, x.astype(dtype), intercept) for dtype in (np.float64, block.dtype)
    )
    b, weight = np.abs(b), weight.reshape(-1, *(1,) * (z.ndim - 1))
    error = np.abs(z - rounded) + float(np.finfo(block.dtype).eps) * (
        np.abs(z) + (b if translates else 1.0)
    )
    steepness = slopes + weight * (curvature * error + (0.0 if translates else b))
    return float(np.sum(steepness * error, dtype=np.float64))


def _predictions(block: Block, x: np.ndarray, intercept: bool) -> np.ndarray:
    z = np.empty((block.shape[0], *x.shape[1:]), x.dtype)
    block.dot(x[: block.shape[1]], z)
    return z + x[-1] if intercept else z
