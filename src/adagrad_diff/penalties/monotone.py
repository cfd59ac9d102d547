"""Monotone vectors: pool adjacent violators, with each coordinate's own step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..linalg.kernels import plain
from ._points import quiet
from ._rows import in_double, tolerance
from ._sizes import at_moderate_size
from .base import Penalty, known_at_zero, point

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Monotone(Penalty):
    r"""The indicator of the nondecreasing (or nonincreasing) vectors.

    .. math:: \varphi(x) = 0 \text{ if } x_1 \le x_2 \le \dots \le x_d, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = \max_{a \le i} \min_{b \ge i}
              \frac{\sum_{j=a}^b z_j / s_j}{\sum_{j=a}^b 1 / s_j}

    Parameters
    ----------
    increasing : bool
        Nondecreasing vectors if True, nonincreasing ones if False.

    Examples
    --------
    >>> from adagrad_diff.penalties import Monotone
    >>> Monotone().prox([1.0, 4.0, 2.0, 5.0], step=1.0).tolist()
    [1.0, 3.0, 3.0, 5.0]
    """

    properties = frozenset({"set", "cone"})

    def __init__(self, increasing: bool = True):
        if not isinstance(increasing, (bool, np.bool_)):
            raise ValueError(
                f"The 'increasing' parameter of Monotone must be True or False. Got {increasing!r} instead."
            )
        self.increasing = bool(increasing)
        self._sign = 1.0 if increasing else -1.0

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        before, after = x[:-1] * x.dtype.type(self._sign), x[1:] * x.dtype.type(self._sign)
        slack = tolerance(x.dtype) * np.maximum(np.abs(before), np.abs(after))
        inside = np.all(before - after <= slack, axis=0) & ~np.isnan(x).any(axis=0)
        return np.where(inside, 0.0, np.inf) if x.ndim == 2 else (0.0 if inside else np.inf)

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        in_double(at_moderate_size(pool, others=(self._sign,)), z, step, out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """0 where y sums to zero and no partial sum is negative (for nonincreasing vectors, positive), else infinite."""
        y = point(self, y, "y")
        sums = self._sign * np.cumsum(y, axis=0, dtype=np.float64)
        slack = tolerance(y.dtype) * np.sum(np.abs(y), axis=0, dtype=np.float64)
        inside = np.all(sums >= -slack, axis=0) & (sums[-1] <= slack)
        return np.where(inside, 0.0, np.inf) if y.ndim == 2 else (0.0 if inside else np.inf)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return known_at_zero(y, e)


@plain
def pool(z: Any, step: Any, sign: Any, x: Any) -> None:
    """Weighted isotonic regression of each row: a new sample is pooled with the blocks before it while it is below them.

    SciPy's isotonic_regression is three times slower, and rounds where there are ties.
    """
    n = z.shape[1]
    start, w, s, v = np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n)
    for k in range(z.shape[0]):
        p = 0
        for i in range(n):
            level = sign * z[k, i]  # what is monotone stays as it is, bit for bit
            wi, first = 1.0 / step[k, i], i
            si = wi * level
            while p > 0 and v[p - 1] > level:
                p -= 1
                wi += w[p]
                si += s[p]
                level, first = si / wi, start[p]
            start[p], w[p], s[p], v[p] = first, wi, si, level
            p += 1
        stop = n
        while p > 0:
            p -= 1
            x[k, start[p] : stop] = sign * v[p]
            stop = start[p]
