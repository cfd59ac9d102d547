"""The Euclidean norm (not squared), whose prox shrinks the whole vector or makes it zero, and its ball."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import by_rows, euclidean, indicator, point, quiet, ratio, tolerance
from .base import RadiusSet, StrengthNorm
from .roots import close, norms

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def vector_norms(z: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the root of `norms` for whole rows, as a column."""
    norms(z, a, np.array([0, z.shape[1]]), h := np.empty((len(z), 1)))
    return h


class L2(StrengthNorm):
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

    @quiet
    def value(self, x: ArrayLike) -> Any:
        return self.lam * euclidean(point(self, x))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        def shrink(z: np.ndarray, step: np.ndarray) -> Any:
            if self.lam == 0.0:
                return z
            h = vector_norms(z, a := self.lam * step)
            return z * (h / (h + a))

        by_rows(shrink, z, step, out)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        return ratio(euclidean(point(self, y, "y")), self.lam)


class L2Ball(RadiusSet):
    r"""The indicator of the Euclidean ball.

    .. math:: \varphi(x) = 0 \text{ if } \|x\|_2 \le r, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = \frac{z_i}{1 + s_i \mu}, \quad
              \mu = 0 \text{ if } z \text{ is inside, else such that } \|x\|_2 = r

    Parameters
    ----------
    radius : float
        The radius r >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import L2Ball
    >>> L2Ball(1.0).prox([3.0, -4.0], step=1.0).round(12).tolist()
    [0.6, -0.8]
    """

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return indicator(euclidean(x) <= self.radius * (1.0 + tolerance(x.dtype)))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        limit = self.radius * (1.0 + close(z))

        def project(z: np.ndarray, step: np.ndarray) -> Any:
            outside = np.sqrt((z * z).sum(axis=1, keepdims=True)) > limit
            h = vector_norms(c := z / step, a := self.radius / step)  # radius times mu
            return np.where(outside, self.radius * (c / (h + a)), z)

        by_rows(project, z, step, out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        return self.radius * euclidean(point(self, y, "y"))
