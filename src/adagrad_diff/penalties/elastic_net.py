"""L1 plus ridge: soft-thresholding, then shrinking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ._norm import tolerance
from ._points import point, quiet, strength
from .base import Penalty

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class ElasticNet(Penalty):
    r"""Sum of an L1 and a squared L2 penalty.

    .. math:: \varphi(x) = \sum_i l_1 |x_i| + \tfrac{l_2}{2} x_i^2, \qquad
              \text{prox}(z, s)_i = \frac{\text{sign}(z_i) \max(|z_i| - s_i l_1, 0)}{1 + s_i l_2}

    Parameters
    ----------
    l1, l2 : float or array
        Strengths >= 0, one for all coordinates or one per coordinate.

    Examples
    --------
    >>> from adagrad_diff.penalties import ElasticNet
    >>> ElasticNet(1.0, 2.0).prox([3.0, -0.5], step=0.5).tolist()
    [1.25, -0.0]
    """

    properties = frozenset({"separable"})

    def __init__(self, l1: ArrayLike, l2: ArrayLike):
        self.l1, self.l2 = strength(l1, "l1", "ElasticNet"), strength(l2, "l2", "ElasticNet")

    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        total = np.empty(x[:1].size)
        kernels.elastic_value(x, self.l1, self.l2, total)
        if x.ndim == 1:
            return total[0] if total[0] < np.inf else self._large_value(x)
        return total if total.max() < np.inf else self._large_value(x)

    @quiet
    def _large_value(self, x: np.ndarray) -> Any:
        """The value where the square of a number overflows."""
        size, (l1, l2) = np.abs(x).astype(np.float64, copy=False), self._beside(x)
        # Where a strength is zero, what it multiplies may be infinite.
        return np.sum(np.where(l1 > 0, l1 * size, 0.0) + np.where(l2 > 0, 0.5 * l2 * size * size, 0.0), axis=0)

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        kernels.shrink(z, step, self.l1, self.l2, out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """sum of max(|y_i| - l1, 0)^2 / (2 l2); where l2 = 0, zero if |y_i| <= l1, else inf."""
        y = point(self, y, "y")
        l1, l2 = self._beside(y)
        excess = np.maximum(np.abs(y) - l1, 0.0)
        excess = np.where((l2 == 0) & (excess <= tolerance(y) * l1), 0.0, excess)
        return np.where(excess == 0, 0.0, excess * (excess / (2 * l2))).sum(axis=0)

    def _beside(self, x: np.ndarray) -> list[np.ndarray]:
        """Both strengths, as columns beside trajectories."""
        return [lam[:, None] if x.ndim == 2 else lam for lam in (self.l1, self.l2)]

    def check_size(self, size: int) -> None:
        for lam in (self.l1, self.l2):
            if lam.size not in (1, size):
                raise ValueError(f"{self!r} has {lam.size} strengths, but there are {size} penalised coordinates.")
