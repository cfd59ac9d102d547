"""The simplex: nonnegative coordinates with a given sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import nonnegative
from ._norm import indicator, tolerance
from ._points import quiet
from ._roots import by_rows, exact, simplex_rows
from ._sizes import at_moderate_size
from .base import Penalty, point, support_near

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Simplex(Penalty):
    r"""The indicator of the simplex.

    .. math:: \varphi(x) = 0 \text{ if } x \ge 0 \text{ and } \sum_i x_i = r, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = \max(z_i - s_i \tau, 0), \quad \tau \text{ such that they add up to } r

    Parameters
    ----------
    radius : float
        The sum r >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import Simplex
    >>> Simplex().prox([1.0, 0.5, -2.0], step=[3.0, 1.0, 1.0]).tolist()
    [0.625, 0.375, 0.0]
    """

    properties = frozenset({"set"})

    def __init__(self, radius: float = 1.0):
        self.radius = nonnegative(radius, "radius", "Simplex")

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        slack = self.radius * tolerance(x)
        return indicator(
            (np.abs(x.sum(axis=0, dtype=np.float64) - self.radius) <= slack)
            & (x.min(axis=0) >= -slack)
        )

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        by_rows(
            at_moderate_size(simplex_rows, lengths=(self.radius,), others=(False, exact(z))),
            z,
            step,
            out,
        )

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        return self.radius * point(self, y, "y").max(axis=0).astype(np.float64)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return support_near(self, y, e)
