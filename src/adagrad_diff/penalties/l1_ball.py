"""The L1 ball: the projection is a soft-thresholding, with a threshold that is just large enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._check import nonnegative
from ._norm import absolute_sum, indicator, largest, tolerance
from ._points import quiet
from ._roots import by_rows, exact, simplex_rows
from ._sizes import at_moderate_size
from .base import Penalty, point, support_near

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike


class L1Ball(Penalty):
    r"""The indicator of the L1 ball.

    .. math:: \varphi(x) = 0 \text{ if } \sum_i |x_i| \le r, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = \text{sign}(z_i) \max(|z_i| - s_i \tau, 0), \quad
              \tau = 0 \text{ if } z \text{ is inside, else such that } \sum_i |x_i| = r

    Parameters
    ----------
    radius : float
        The radius r >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import L1Ball
    >>> L1Ball(2.0).prox([3.0, -2.0, 0.5], step=[1.0, 0.5, 1.0]).tolist()
    [1.0, -1.0, 0.0]
    """

    properties = frozenset({"set"})

    def __init__(self, radius: float):
        self.radius = nonnegative(radius, "radius", "L1Ball")

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return indicator(absolute_sum(x) <= self.radius * (1.0 + tolerance(x)))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        by_rows(
            at_moderate_size(simplex_rows, lengths=(self.radius,), others=(True, exact(z))),
            z,
            step,
            out,
        )

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        return self.radius * largest(point(self, y, "y"))

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return support_near(self, y, e)
