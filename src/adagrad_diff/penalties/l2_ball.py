"""The Euclidean ball: the projection in a diagonal metric shrinks each coordinate by its own factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._check import nonnegative
from ._norm import euclidean, indicator, tolerance
from ._points import quiet
from ._roots import by_rows, exact, l2_ball_rows
from ._sizes import at_moderate_size
from .base import Penalty, point, support_near

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike


class L2Ball(Penalty):
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

    properties = frozenset({"set"})

    def __init__(self, radius: float):
        self.radius = nonnegative(radius, "radius", "L2Ball")

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return indicator(euclidean(x) <= self.radius * (1.0 + tolerance(x)))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        by_rows(
            at_moderate_size(l2_ball_rows, lengths=(self.radius,), others=(exact(z),)), z, step, out
        )

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        return self.radius * euclidean(point(self, y, "y"))

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return support_near(self, y, e)
