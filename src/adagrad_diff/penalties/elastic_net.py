"""L1 plus ridge: soft-thresholding, then shrinking."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ._norm import tolerance
from .base import Penalty, as_float, prepare, strength


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

    def __init__(self, l1: Any, l2: Any):
        self.l1, self.l2 = strength(l1, "l1", "ElasticNet"), strength(l2, "l2", "ElasticNet")

    def value(self, x):
        x = as_float(x)
        self.check_size(len(x))
        total = np.empty(x[:1].size)
        kernels.elastic_value(x, self.l1, self.l2, total)
        return total[0] if x.ndim == 1 else total

    def prox(self, z, step, out=None):
        z, step, out = prepare(z, step, out)
        self.check_size(len(z))
        kernels.shrink(z, step, self.l1, self.l2, out)
        return out

    def conjugate(self, y):
        """sum of max(|y_i| - l1, 0)^2 / (2 l2); where l2 = 0, zero if |y_i| <= l1, else inf."""
        y = as_float(y)
        self.check_size(len(y))
        l1, l2 = (lam[:, None] if y.ndim == 2 else lam for lam in (self.l1, self.l2))
        excess = np.maximum(np.abs(y) - l1, 0.0)
        excess = np.where((l2 == 0) & (excess <= tolerance(y) * l1), 0.0, excess)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(excess == 0, 0.0, excess**2 / (2 * l2)).sum(axis=0)

    def check_size(self, size):
        for lam in (self.l1, self.l2):
            if lam.size not in (1, size):
                raise ValueError(f"{self!r} has {lam.size} strengths, but there are {size} penalised coordinates.")
