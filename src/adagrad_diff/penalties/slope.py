"""SLOPE, the sorted L1 norm: the larger a coordinate is among the others, the stronger it is penalised."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._norm import Norm, ratio
from .base import as_float, scalar_step


class SLOPE(Norm):
    r"""The sorted L1 norm.

    .. math:: \varphi(x) = \sum_k \lambda_k |x|_{(k)}, \qquad |x|_{(1)} \ge |x|_{(2)} \ge \dots

    The prox is known in a scalar metric only. There it keeps the order of the absolute values: it is the nonincreasing
    vector nearest to :math:`|z|_{(k)} - s \lambda_k`, with negative entries set to zero, in the order and with the signs of z.

    Parameters
    ----------
    lams : array
        Strengths >= 0, one per coordinate, none larger than the one before it.

    Examples
    --------
    >>> from adagrad_diff.penalties import SLOPE
    >>> SLOPE([2.0, 1.0, 0.0]).prox([1.0, -5.0, 4.5], step=1.0).tolist()
    [1.0, -3.25, 3.25]

    References
    ----------
    Bogdan, van den Berg, Sabatti, Su, Candès: SLOPE - adaptive variable selection via convex optimization. Annals of
    Applied Statistics 9 (2015).
    """

    accepts = "scalar"

    def __init__(self, lams: Any):
        self.lams = np.asarray(lams, np.float64)
        if self.lams.ndim != 1 or self.lams.size == 0 or not np.isfinite(self.lams).all() or (self.lams < 0).any():
            raise ValueError(f"The 'lams' parameter of SLOPE must be a vector of numbers >= 0. Got {lams!r} instead.")
        if (np.diff(self.lams) > 0).any():
            raise ValueError(
                "The 'lams' parameter of SLOPE must not increase: otherwise it is not convex. "
                f"Sort it; entry {int(np.argmax(np.diff(self.lams) > 0)) + 1} is larger than the one before it."
            )

    def _descending(self, x: Any) -> np.ndarray:
        """|x|, sorted from large to small along the coordinates, in float64."""
        return np.sort(np.abs(as_float(x)), axis=0)[::-1].astype(np.float64)

    def value(self, x):
        return self.lams @ self._descending(x)

    def prox(self, z, step, out=None):
        z = as_float(z)
        step = np.atleast_1d(scalar_step(self, step, z)).astype(np.float64)
        result = np.empty_like(z) if out is None else out
        columns, results = z.reshape(len(z), -1), result[:, None] if result.ndim == 1 else result
        for k in range(columns.shape[1]):
            results[:, k] = self._prox(columns[:, k].astype(np.float64), step[k])
        return result

    def _prox(self, z: np.ndarray, step: float) -> np.ndarray:
        from scipy.optimize import isotonic_regression

        if not np.isfinite(z).all():
            return np.full_like(z, np.nan)
        size = np.abs(z)
        order = np.argsort(-size, kind="stable")
        nearest = isotonic_regression(size[order] - step * self.lams, increasing=False).x
        result = np.empty_like(z)
        result[order] = np.maximum(nearest, 0.0)
        return np.copysign(result, z)

    def polar(self, y):
        sums, strengths = np.cumsum(self._descending(y), axis=0), np.cumsum(self.lams)
        return ratio(sums, strengths.reshape(-1, *(1,) * (sums.ndim - 1))).max(axis=0)

    def check_size(self, size):
        if self.lams.size != size:
            raise ValueError(f"SLOPE has {self.lams.size} strengths, but there are {size} penalised coordinates.")
