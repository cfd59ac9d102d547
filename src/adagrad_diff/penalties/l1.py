"""The L1 norm: soft-thresholding, with each coordinate's own step."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import strength
from .elastic_net import ElasticNet


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
    [2.0, -0.0, -1.9]
    """

    def __init__(self, lam: Any):
        self.l1, self.l2 = strength(lam, "lam", "L1"), np.zeros(1)

    def __repr__(self):
        return f"L1(lam={self.l1!r})"
