"""Where the runs of a comparison start, and which step sizes they try, if nobody says."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ..losses import Loss
from ..penalties import Penalty

SEED = 0
DECADES = (
    -4.0,
    3.0,
)  # of the grid, about the size of a minimiser's coordinates: what AdaGrad's eta is measured in
PER_DECADE = 2


def as_starts(starts: Any, loss: Loss, penalty: Penalty) -> np.ndarray:
    """One start per column: what was given, or zeros and small models at random, where the penalty is finite."""
    if np.ndim(starts) > 0:
        return np.asarray(starts)  # `sweep` looks at it
    count = _check.count(starts, "starts", "sensitivity", least=1)
    if loss.shape is None:
        raise ValueError(
            "'starts' must be an array with one start per column: the loss is a function of any number of them."
        )
    rng = np.random.default_rng(SEED)
    known = loss.coordinates()
    size = np.full(loss.shape, known.unit)
    if known.scale is not None:  # predictions, and not coefficients, are of the size of the target
        size.reshape(-1)[: known.scale.size] *= known.scale
    draws = rng.standard_normal((*loss.shape, count)) * size[..., None] / np.sqrt(size.shape[0])
    draws[..., 0] = 0.0
    columns = [
        _feasible(draws[..., k].astype(loss.dtype or np.float64), loss, penalty)
        for k in range(count)
    ]
    return np.stack(columns, axis=-1)


def _feasible(x: np.ndarray, loss: Loss, penalty: Penalty) -> np.ndarray:
    """x, or the nearest point of the set that the penalty stands for."""
    part = x[:-1] if loss.intercept else x
    if not np.isfinite(penalty.value(part.reshape(-1))):
        part[...] = penalty.prox(part.reshape(-1), 1.0).reshape(part.shape)
    return x


def as_etas(etas: Any, size: float) -> np.ndarray:
    """Increasing step sizes: what was given, or seven decades that hold powers of ten."""
    if etas is not None:
        return np.sort(np.ravel(_check.real_array(etas, "etas")))  # `sweep` looks at the rest
    low, high = np.round(np.log10(size)) + np.array(DECADES)
    count = 1 + PER_DECADE * round(high - low)
    return np.asarray(np.logspace(low, high, count))
