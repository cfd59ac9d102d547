"""The maximum norm: the largest coordinates are cut to a common size."""

from __future__ import annotations

from .._check import nonnegative
from ._norm import Norm, absolute_sum, largest, ratio
from ._roots import by_rows, linf_rows
from .base import as_float


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

    def value(self, x):
        return self.lam * largest(as_float(x))

    def prox(self, z, step, out=None):
        return by_rows(linf_rows, z, step, out, self.lam)

    def polar(self, y):
        return ratio(absolute_sum(as_float(y)), self.lam)
