"""SLOPE, the sorted L1 norm: the larger a coordinate is among the others, the stronger it is penalized."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import numbers, shown
from .arrays import by_rows, check_length, column, point, quiet, ratio
from .base import Norm, scalar_step

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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

    def __init__(self, lams: ArrayLike):
        sentence = f"The 'lams' parameter of SLOPE must be a vector of numbers >= 0. Got {shown(lams)} instead."
        self.lams = numbers(lams, sentence)
        if (
            self.lams.ndim != 1
            or self.lams.size == 0
            or not np.isfinite(self.lams).all()
            or (self.lams < 0).any()
        ):
            raise ValueError(sentence)
        if (np.diff(self.lams) > 0).any():
            raise ValueError(
                "The 'lams' parameter of SLOPE must not increase: otherwise it is not convex. "
                f"Sort it; entry {int(np.argmax(np.diff(self.lams) > 0)) + 1} is larger than the one before it."
            )

    def _descending(self, x: np.ndarray) -> np.ndarray:
        """|x|, sorted from large to small along the coordinates, in float64."""
        return np.sort(np.abs(x), axis=0)[::-1].astype(np.float64)

    @quiet
    def value(self, x: ArrayLike) -> Any:
        return self.lams @ self._descending(point(self, x))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        from scipy.optimize import isotonic_regression

        def shrink(z: np.ndarray, step: np.ndarray) -> Any:
            size = np.abs(z)
            order = np.argsort(-size, axis=1, kind="stable")
            falling = np.take_along_axis(size, order, axis=1) - step * self.lams
            nearest = [isotonic_regression(row, increasing=False).x for row in falling]
            np.put_along_axis(size, order, np.maximum(nearest, 0.0), axis=1)
            return np.copysign(size, z)

        by_rows(shrink, z, scalar_step(self, step), out)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        sums = np.cumsum(self._descending(point(self, y, "y")), axis=0)
        return ratio(sums, column(np.cumsum(self.lams), sums)).max(axis=0)

    def check_size(self, size: int) -> None:
        check_length(size, self.lams.size, "SLOPE", "strengths")
