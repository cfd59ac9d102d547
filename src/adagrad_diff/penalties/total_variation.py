"""Total variation along a chain: a taut string, with each coordinate's own step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .. import _check
from ._chain import chain_prox, chain_value
from ._points import quiet
from ._rows import tolerance
from .base import Penalty, point

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class TotalVariation1D(Penalty):
    r"""Total variation of a chain: the solutions are piecewise constant.

    .. math:: \varphi(x) = \lambda \sum_i |x_{i+1} - x_i|, \qquad
              \text{prox}(z, s) = \arg\min_x\; \varphi(x) + \sum_i \frac{(x_i - z_i)^2}{2 s_i}

    The prox is computed exactly, in any diagonal metric, in O(d).

    Parameters
    ----------
    lam : float
        Strength >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import TotalVariation1D
    >>> TotalVariation1D(1.0).prox([0.0, 1.0, 9.0, 7.0], step=1.0).tolist()
    [1.0, 1.0, 7.5, 7.5]

    References
    ----------
    P. L. Davies and A. Kovac, "Local extremes, runs, strings and multiresolution", Annals of Statistics 29, 2001.

    L. Condat, "A direct algorithm for 1-D total variation denoising", IEEE Signal Processing Letters 20, 2013.
    """

    properties = frozenset({"seminorm"})

    def __init__(self, lam: float):
        self.lam = _check.nonnegative(lam, "lam", "TotalVariation1D")

    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        total = np.empty(x[:1].size)
        chain_value(x, 0.0, self.lam, total)
        return total[0] if x.ndim == 1 else total

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        chain_prox(z, step, 0.0, self.lam, out)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        """The largest of the partial sums of y over lam; infinite unless y sums to zero, as phi is zero on constants."""
        y = point(self, y, "y")
        sums = np.abs(np.cumsum(y, axis=0, dtype=np.float64))
        size = np.sum(np.abs(y), axis=0, dtype=np.float64)
        largest = np.max(sums[:-1], axis=0, initial=0.0)
        known = (sums[-1] <= tolerance(y.dtype) * size) & ((size == 0) | (self.lam > 0))
        polar = np.where(known, largest / (self.lam or 1.0), np.inf)
        return polar if y.ndim == 2 else float(polar)

    def null_space(self, size: int) -> np.ndarray:
        return np.ones((size, 1))

    def polar_inequalities(self, rows: Any, g: np.ndarray) -> tuple[Any, np.ndarray, int]:
        partial, sums = np.cumsum(rows.toarray(), axis=0), np.cumsum(g)  # at most t lam in size
        sides = [np.hstack([s * partial, np.full((g.size, 1), -self.lam)]) for s in (1.0, -1.0)]
        return sparse.csr_array(np.vstack(sides)), np.concatenate([-sums, sums]), 0

    def conjugate(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        conjugate = np.where(self.polar(y) <= 1.0 + tolerance(y.dtype), 0.0, np.inf)
        return conjugate if y.ndim == 2 else float(conjugate)
