"""The Euclidean norm (not squared): the whole vector shrinks, or becomes zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._check import nonnegative
from ._norm import Norm, euclidean, ratio
from ._points import quiet
from ._roots import by_rows, l2_rows
from .base import point

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike


class L2(Norm):
    r"""The Euclidean norm. Half its square is `Ridge`; the sum over groups is `GroupL2`.

    .. math:: \varphi(x) = \lambda \|x\|_2, \qquad \text{prox}(z, s)_i = \frac{h z_i}{h + \lambda s_i}, \qquad
              h > 0 \text{ with } \sum_i \frac{z_i^2}{(h + \lambda s_i)^2} = 1,
              \quad\text{or } 0 \text{ if } \sum_i \frac{z_i^2}{(\lambda s_i)^2} \le 1

    If all steps are equal, :math:`h = \|z\|_2 - \lambda s`.

    Parameters
    ----------
    lam : float
        Strength >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import L2
    >>> L2(1.0).prox([3.0, -4.0], step=1.0).round(12).tolist()
    [2.4, -3.2]
    """

    def __init__(self, lam: float):
        self.lam = nonnegative(lam, "lam", "L2")

    @quiet
    def value(self, x: ArrayLike) -> Any:
        return self.lam * euclidean(point(self, x))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        by_rows(lambda z, step, x: l2_rows(z, step, self.lam, x), z, step, out)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        return ratio(euclidean(point(self, y, "y")), self.lam)
