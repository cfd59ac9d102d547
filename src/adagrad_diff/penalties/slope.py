"""SLOPE, the sorted L1 norm: the larger a coordinate is among the others, the stronger it is penalised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import numbers, shown
from ._norm import Norm, ratio, unit_of
from ._points import quiet
from ._rows import in_double
from ._sizes import at_moderate_size
from .base import point, scalar_step

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def slope_rows(z: Any, step: Any, lams: Any, x: Any) -> None:
    """Each row: the nearest nonincreasing vector to the sorted |z| - step * lams, if not negative, in the order of z"""
    from scipy.optimize import isotonic_regression

    for k in range(len(z)):
        if not np.isfinite(z[k]).all():
            x[k] = np.nan
            continue
        size = np.abs(z[k])
        order = np.argsort(-size, kind="stable")
        nearest = isotonic_regression(size[order] - step[k] * lams, increasing=False).x
        x[k, order] = np.maximum(nearest, 0.0)
        x[k] = np.copysign(x[k], z[k])


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

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        step = np.broadcast_to(scalar_step(self, step, z), z.shape)
        in_double(at_moderate_size(slope_rows, strengths=(self.lams,)), z, step, out)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        sizes = self._descending(point(self, y, "y"))
        unit, own = unit_of(sizes[0]), unit_of(self.lams[0])
        sums, strengths = np.cumsum(sizes / unit, axis=0), np.cumsum(self.lams / own)
        return unit * ratio(sums, strengths.reshape(-1, *(1,) * (sums.ndim - 1))).max(axis=0) / own

    def check_size(self, size: int) -> None:
        if self.lams.size != size:
            raise ValueError(
                f"SLOPE has {self.lams.size} strengths, but there are {size} penalised coordinates."
            )
