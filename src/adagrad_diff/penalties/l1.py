"""The L1 norm: soft-thresholding, with each coordinate's own step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._norm import ratio
from ._points import point, strength
from .elastic_net import ElasticNet

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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

    def __init__(self, lam: ArrayLike):
        self.l1, self.l2 = strength(lam, "lam", "L1"), np.zeros(1)

    @property
    def properties(self) -> frozenset[str]:  # type: ignore[override]
        """A norm, unless a strength is zero."""
        return frozenset({"separable", "norm" if (self.l1 > 0).all() else "seminorm"})

    def polar(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        return ratio(np.abs(y), self._beside(y)[0]).max(axis=0)

    def __repr__(self) -> str:
        return f"L1(lam={self.l1!r})"
