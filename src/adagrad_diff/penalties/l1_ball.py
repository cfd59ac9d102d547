"""The L1 ball and the simplex: soft-thresholding, with a threshold that is just large enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import absolute_sum, by_rows, indicator, largest, point, quiet, tolerance
from .base import RadiusSet
from .roots import close, thresholds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class L1Ball(RadiusSet):
    r"""The indicator of the L1 ball.

    .. math:: \varphi(x) = 0 \text{ if } \sum_i |x_i| \le r, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = \text{sign}(z_i) \max(|z_i| - s_i \tau, 0), \quad
              \tau = 0 \text{ if } z \text{ is inside, else such that } \sum_i |x_i| = r

    Parameters
    ----------
    radius : float
        The radius r >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import L1Ball
    >>> L1Ball(2.0).prox([3.0, -2.0, 0.5], step=[1.0, 0.5, 1.0]).tolist()
    [1.0, -1.0, 0.0]
    """

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return indicator(absolute_sum(x) <= self.radius * (1.0 + tolerance(x.dtype)))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        limit = self.radius * (1.0 + close(z))

        def project(z: np.ndarray, step: np.ndarray) -> np.ndarray:
            x, outside = z.copy(), np.abs(z).sum(axis=1) > limit
            x[outside] = np.copysign(self._onto(np.abs(z[outside]), step[outside]), z[outside])
            return x

        by_rows(project, z, step, out)

    def _onto(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return the projection of each row onto the simplex."""
        if self.radius == 0.0 or not z.size:
            return np.zeros_like(z)
        thresholds(z, step, self.radius, np.empty(len(z)))
        return z

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        return self.radius * largest(point(self, y, "y"))


class Simplex(L1Ball):
    r"""The indicator of the simplex.

    .. math:: \varphi(x) = 0 \text{ if } x \ge 0 \text{ and } \sum_i x_i = r, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = \max(z_i - s_i \tau, 0), \quad \tau \text{ such that they add up to } r

    Parameters
    ----------
    radius : float
        The sum r >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import Simplex
    >>> Simplex().prox([1.0, 0.5, -2.0], step=[3.0, 1.0, 1.0]).tolist()
    [0.625, 0.375, 0.0]
    """

    def __init__(self, radius: float = 1.0):
        super().__init__(radius)

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        slack = self.radius * tolerance(x.dtype)
        return indicator(
            (np.abs(x.sum(axis=0, dtype=np.float64) - self.radius) <= slack)
            & (x.min(axis=0) >= -slack)
        )

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        slack = self.radius * close(z)

        def project(z: np.ndarray, step: np.ndarray) -> np.ndarray:
            x = z.copy()
            outside = (np.abs(z.sum(axis=1) - self.radius) > slack) | (z.min(axis=1) < 0.0)
            x[outside] = self._onto(z[outside], step[outside])
            return x

        by_rows(project, z, step, out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        return self.radius * point(self, y, "y").max(axis=0).astype(np.float64)
