"""Half the squared Euclidean norm: shrinking, with each coordinate's own step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._points import strength
from .elastic_net import ElasticNet

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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
        self.l1, self.l2 = np.zeros(1), strength(lam, "lam", "Ridge")

    def __repr__(self) -> str:
        return f"Ridge(lam={self.l2!r})"
