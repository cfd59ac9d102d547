"""The maximum norm: the largest coordinates are cut to a common size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._check import nonnegative
from ._norm import Norm, absolute_sum, largest, ratio
from ._points import quiet
from ._roots import by_rows, linf_rows
from ._sizes import at_moderate_size
from .base import point

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class LInf(Norm):
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

    def __init__(self, lam: float):
        self.lam = nonnegative(lam, "lam", "LInf")

    @quiet
    def value(self, x: ArrayLike) -> Any:
        return self.lam * largest(point(self, x))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        by_rows(at_moderate_size(linf_rows, strengths=(self.lam,)), z, step, out)

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
