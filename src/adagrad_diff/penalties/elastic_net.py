"""L1 plus ridge, and either alone: soft-thresholding, then shrinking, with each coordinate's own step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._messages import call
from .arrays import EPS, check_length, column, per_coordinate, point, quiet, ratio, tolerance
from .base import Penalty, QuadraticTerms

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
    [1.25, 0.0]
    """

    properties = frozenset({"separable"})

    def __init__(self, l1: ArrayLike, l2: ArrayLike):
        self.l1, self.l2 = (
            per_coordinate(l1, "l1", "ElasticNet", 0.0),
            per_coordinate(l2, "l2", "ElasticNet", 0.0),
        )

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        size = np.abs(x).astype(np.float64, copy=False)
        total = _weighted_sum(self.l1, size)
        if self.l2.size > 1 or self.l2[0]:
            total = total + 0.5 * _weighted_sum(self.l2, size * size)
        return total

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        l1, l2 = (lam.item() if lam.size == 1 else column(lam, z) for lam in (self.l1, self.l2))
        by = step * l1  # for few entries, np.clip takes longer than these two calls
        np.subtract(z, np.minimum(np.maximum(z, -by), by), out=out)
        if self.l2.size > 1 or l2:
            np.divide(out, 1.0 + step * l2, out=out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """sum of max(|y_i| - l1, 0)^2 / (2 l2); where l2 = 0, zero if |y_i| <= l1, else inf."""
        y = point(self, y, "y")
        l1, l2 = column(self.l1, y), column(self.l2, y)
        excess = np.maximum(np.abs(y) - l1, 0.0)
        excess = np.where((l2 == 0) & (excess <= tolerance(y.dtype) * l1), 0.0, excess)
        return np.where(excess == 0, 0.0, excess * (excess / (2 * l2))).sum(axis=0)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        excess = np.maximum(np.abs(y) + e - self.l1, 0.0)
        if np.any((excess > 0) & (self.l2 == 0)):
            return np.inf, np.inf
        ratio = np.divide(excess, self.l2, out=np.zeros_like(excess), where=excess > 0)
        value = 0.5 * np.sum(ratio * excess)
        return value, value + np.sum(ratio * self.l1)  # |y| - l1 is rounded as well

    def quadratic_terms(self, size: int) -> QuadraticTerms:
        return QuadraticTerms.of(size, self.l1, self.l2)

    def norm_part(self) -> Penalty:
        return L1(self.l1)

    def check_size(self, size: int) -> None:
        for lam in (self.l1, self.l2):
            if lam.size not in (1, size):
                check_length(size, lam.size, repr(self), "strengths", or_one=True)

    def __repr__(self) -> str:
        return call(self, l1=_plain(self.l1), l2=_plain(self.l2))


class L1(ElasticNet):
    r"""The (weighted) L1 norm.

    .. math:: \varphi(x) = \sum_i \lambda_i |x_i|, \qquad \text{prox}(z, s)_i = \text{sign}(z_i) \max(|z_i| - s_i \lambda_i, 0)

    Parameters
    ----------
    lam : float or array
        Strength >= 0, one for all coordinates or one per coordinate.

    Examples
    --------
    >>> from adagrad_diff.penalties import L1
    >>> L1(1.0).prox([3.0, -0.5, -2.0], step=[1.0, 1.0, 0.1]).tolist()
    [2.0, 0.0, -1.9]
    """

    def __init__(self, lam: ArrayLike):
        self.l1, self.l2 = per_coordinate(lam, "lam", "L1", 0.0), np.zeros(1)

    @property
    def properties(self) -> frozenset[str]:  # type: ignore[override]
        """A norm, unless a strength is zero."""
        return frozenset({"separable", "norm" if (self.l1 > 0).all() else "seminorm"})

    def polar(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        return ratio(np.abs(y), column(self.l1, y)).max(axis=0)

    def polar_accuracy(self, size: int) -> float:
        return 4 * EPS  # a maximum of quotients

    def polar_inequalities(self, rows: Any, g: np.ndarray) -> tuple[Any, np.ndarray, int]:
        strength = np.broadcast_to(self.l1, g.size)[:, None]  # |y_i| <= t lam_i
        sides = [sparse.hstack([sign * rows, -strength]) for sign in (1.0, -1.0)]
        return sparse.vstack(sides), np.concatenate([-g, g]), 0

    @property
    def strength_unit(self) -> float:
        return float(self.l1[0]) if self.l1.size == 1 and self.l1[0] > 0 else 1.0

    def __repr__(self) -> str:
        return call(self, lam=_plain(self.l1))


class Ridge(ElasticNet):
    r"""Half the squared Euclidean norm.

    .. math:: \varphi(x) = \tfrac{\lambda}{2} \|x\|^2, \qquad \text{prox}(z, s)_i = z_i / (1 + s_i \lambda)

    Parameters
    ----------
    lam : float or array
        Strength >= 0, one for all coordinates or one per coordinate.

    Examples
    --------
    >>> from adagrad_diff.penalties import Ridge
    >>> Ridge(2.0).prox([3.0, -1.0], step=0.5).tolist()
    [1.5, -0.5]
    """

    def __init__(self, lam: ArrayLike):
        self.l1, self.l2 = np.zeros(1), per_coordinate(lam, "lam", "Ridge", 0.0)

    def __repr__(self) -> str:
        return call(self, lam=_plain(self.l2))


def _weighted_sum(lam: np.ndarray, size: np.ndarray) -> Any:
    """Return the sum of lam * size over the coordinates. Where a strength is zero, the size may be infinite."""
    if lam.size == 1:
        return lam[0] * np.add.reduce(size) if lam[0] else np.zeros(size.shape[1:])[()]
    return np.where(column(lam, size) > 0, column(lam, size) * size, 0.0).sum(axis=0)


def _plain(lam: np.ndarray) -> Any:
    """One strength for all coordinates as the number that it is."""
    return lam.item() if lam.size == 1 else lam
