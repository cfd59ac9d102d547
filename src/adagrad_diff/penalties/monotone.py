"""Monotone vectors: pool adjacent violators, with each coordinate's own step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .arrays import by_rows, indicator, point, quiet, tolerance
from .base import Penalty, known_at_zero

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Monotone(Penalty):
    r"""The indicator of the nondecreasing (or nonincreasing) vectors.

    .. math:: \varphi(x) = 0 \text{ if } x_1 \le x_2 \le \dots \le x_d, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = \max_{a \le i} \min_{b \ge i}
              \frac{\sum_{j=a}^b z_j / s_j}{\sum_{j=a}^b 1 / s_j}

    Parameters
    ----------
    increasing : bool
        Nondecreasing vectors if True, nonincreasing ones if False.

    Examples
    --------
    >>> from adagrad_diff.penalties import Monotone
    >>> Monotone().prox([1.0, 4.0, 2.0, 5.0], step=1.0).tolist()
    [1.0, 3.0, 3.0, 5.0]
    """

    properties = frozenset({"set", "cone"})

    def __init__(self, increasing: bool = True):
        self.increasing = _check.flag(increasing, "increasing", "Monotone")
        self._sign = 1.0 if increasing else -1.0

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        before, after = x[:-1] * x.dtype.type(self._sign), x[1:] * x.dtype.type(self._sign)
        slack = tolerance(x.dtype) * np.maximum(np.abs(before), np.abs(after))
        inside = (before - after <= slack).all(axis=0) & ~np.isnan(x).any(axis=0)
        return indicator(inside)

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        from scipy.optimize import isotonic_regression

        def pool(z: np.ndarray, step: np.ndarray) -> np.ndarray:
            for k in np.flatnonzero((self._sign * np.diff(z, axis=1) < 0.0).any(axis=1)):
                z[k] = isotonic_regression(
                    z[k], weights=step[k].min() / step[k], increasing=self.increasing
                ).x
            return z

        by_rows(pool, z, step, out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """0 where y sums to zero and no partial sum is negative (for nonincreasing vectors, positive), else infinite."""
        y = point(self, y, "y")
        sums = self._sign * np.cumsum(y, axis=0, dtype=np.float64)
        slack = tolerance(y.dtype) * np.sum(np.abs(y), axis=0, dtype=np.float64)
        inside = (sums >= -slack).all(axis=0) & (sums[-1] <= slack)
        return indicator(inside)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return known_at_zero(y, e)
