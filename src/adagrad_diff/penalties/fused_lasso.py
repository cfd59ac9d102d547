"""The fused lasso: sparse and piecewise constant, with each coordinate's own step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from ..linalg.kernels import plain
from ._chain import chain_prox, chain_value
from ._points import quiet
from ._rows import as_rows, tolerance
from .base import Penalty, point
from .total_variation import TotalVariation1D

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class FusedLasso(Penalty):
    r"""L1 norm plus total variation of a chain: the solutions are sparse and piecewise constant.

    .. math:: \varphi(x) = l_1 \sum_i |x_i| + t \sum_i |x_{i+1} - x_i|, \qquad
              \text{prox}(z, s) = \max(T(z - s\, l_1), 0) + \min(T(z + s\, l_1), 0)

    where T is the prox of the total variation alone, with the same steps. (The set where x exceeds a level depends only on
    the slope of the rest of the objective at that level, and the slope of l1 |x| is l1 at all levels above zero, -l1 at all
    below.) With one step for all coordinates this is T, then soft-thresholding; with several, that would be wrong.

    Parameters
    ----------
    l1, tv : float
        Strengths >= 0 of the L1 norm and of the total variation.

    Examples
    --------
    >>> from adagrad_diff.penalties import FusedLasso
    >>> FusedLasso(1.0, 1.0).prox([0.0, 1.0, 9.0, 7.0], step=1.0).tolist()
    [0.0, 0.0, 6.5, 6.5]
    """

    def __init__(self, l1: float, tv: float):
        self.l1, self.tv = (
            _check.nonnegative(v, name, "FusedLasso") for v, name in ((l1, "l1"), (tv, "tv"))
        )

    @property
    def properties(self) -> frozenset[str]:  # type: ignore[override]
        """A norm, unless it is the total variation alone."""
        return frozenset({"norm" if self.l1 > 0 else "seminorm"})

    def null_space(self, size: int) -> np.ndarray:
        return np.zeros((size, 0)) if self.l1 > 0 else np.ones((size, 1))

    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        total = np.empty(x[:1].size)
        chain_value(x, self.l1, self.tv, total)
        return total[0] if x.ndim == 1 else total

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        chain_prox(z, step, self.l1, self.tv, out)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        """The largest |sum of y over an interval| / phi(ones on it), as phi adds up over the level sets of x."""
        if self.l1 == 0:
            return TotalVariation1D(self.tv).polar(y)
        y = point(self, y, "y")
        polar = np.empty(y[:1].size)
        largest_ratio(as_rows(y), self.l1, self.tv, polar)
        polar = np.where(np.isfinite(y).all(axis=0), polar, np.inf)
        return polar if y.ndim == 2 else float(polar[0])

    def conjugate(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        conjugate = np.where(self.polar(y) <= 1.0 + tolerance(y.dtype), 0.0, np.inf)
        return conjugate if y.ndim == 2 else float(conjugate)


@plain
def largest_ratio(y: Any, l1: Any, tv: Any, out: Any) -> None:
    """Over intervals, the largest |sum of y| / (l1 length + tv ends inside the chain), for each row.

    Dinkelbach: with the best ratio so far, find the interval where |sum| - ratio * denominator is largest (a running
    maximum); while that is positive the interval has a better ratio. Finitely many intervals, so it ends.
    """
    n = y.shape[1]
    for k in range(y.shape[0]):
        ratio, better = 0.0, True
        while better:
            most, best = 0.0, ratio
            for sign in (1.0, -1.0):
                gain, total, length, ends = -np.inf, 0.0, 0, 0
                for i in range(n):
                    alone = -ratio * tv if i > 0 else 0.0
                    if alone >= gain:  # start anew at i
                        gain, total, length, ends = alone, 0.0, 0, (1 if i > 0 else 0)
                    gain += sign * y[k, i] - ratio * l1
                    total += sign * y[k, i]
                    length += 1
                    last = 1 if i < n - 1 else 0
                    if gain - ratio * tv * last > most:
                        most, best = (
                            gain - ratio * tv * last,
                            total / (l1 * length + tv * (ends + last)),
                        )
            better = best > ratio
            ratio = best if better else ratio
        out[k] = ratio
