"""The maximum norm, whose prox cuts the largest coordinates to a common size, and its ball, a cube."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._check import nonnegative
from .arrays import absolute_sum, by_rows, largest, point, quiet, ratio
from .base import StrengthNorm
from .box import Box
from .roots import thresholds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class LInf(StrengthNorm):
    r"""The maximum norm.

    .. math:: \varphi(x) = \lambda \max_i |x_i|, \qquad \text{prox}(z, s)_i = \text{sign}(z_i) \min(|z_i|, t), \qquad
              t \ge 0 \text{ with } \sum_i \frac{\max(|z_i| - t, 0)}{s_i} = \lambda,
              \quad\text{or } t = 0 \text{ if } \sum_i \frac{|z_i|}{s_i} \le \lambda

    Parameters
    ----------
    lam : float
        Strength >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import LInf
    >>> LInf(1.0).prox([3.0, -0.5, -2.5], step=1.0).tolist()
    [2.25, -0.5, -2.25]
    """

    @quiet
    def value(self, x: ArrayLike) -> Any:
        return self.lam * largest(point(self, x))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        by_rows(self._cut, z, step, out)

    def _cut(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        if self.lam == 0.0:
            return z
        level = np.empty(len(z))
        thresholds(np.abs(z) / step, 1.0 / step, self.lam, level)
        return np.asarray(
            np.clip(z, -np.maximum(level, 0.0)[:, None], np.maximum(level, 0.0)[:, None])
        )

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        return ratio(absolute_sum(point(self, y, "y")), self.lam)

    def polar_inequalities(self, rows: Any, g: np.ndarray) -> tuple[Any, np.ndarray, int]:
        size, kinks = rows.shape  # |y_i| <= u_i, and the sum of u is at most t lam
        sides = [
            sparse.hstack([sign * rows, -sparse.eye_array(size), np.zeros((size, 1))])
            for sign in (1.0, -1.0)
        ]
        total = np.concatenate([np.zeros(kinks), np.ones(size), [-self.lam]])[None]
        return sparse.vstack([*sides, total]), np.concatenate([-g, g, [0.0]]), size


class LInfBall(Box):
    r"""The indicator of the ball of the maximum norm.

    .. math:: \varphi(x) = 0 \text{ if } \max_i |x_i| \le r, \text{ else } \infty, \qquad
              \text{prox}(z, s) = \min(\max(z, -r), r)

    Parameters
    ----------
    radius : float
        The radius r >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import LInfBall
    >>> LInfBall(1.0).prox([3.0, -0.5, -2.0], step=1.0).tolist()
    [1.0, -0.5, -1.0]
    """

    def __init__(self, radius: float):
        self.radius = nonnegative(radius, "radius", "LInfBall")
        super().__init__(-self.radius, self.radius)

    def __repr__(self) -> str:
        return f"LInfBall(radius={self.radius!r})"
