"""The ball of the maximum norm, a cube: the prox is clipping, whatever the metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._check import nonnegative
from ._norm import absolute_sum
from ._points import quiet
from .base import point
from .box import Box

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class LInfBall(Box):
    r"""The indicator of the ball of the maximum norm.

    .. math:: \varphi(x) = 0 \text{ if } \max_i |x_i| \le r, \text{ else } \infty, \qquad
              \text{prox}(z, s) = \min(\max(z, -r), r)

    Parameters
    ----------
    radius : float
        The radius r >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import LInfBall
    >>> LInfBall(1.0).prox([3.0, -0.5, -2.0], step=1.0).tolist()
    [1.0, -0.5, -1.0]
    """

    properties = frozenset({"set", "separable"})

    def __init__(self, radius: float):
        self.radius = nonnegative(radius, "radius", "LInfBall")
        super().__init__(-self.radius, self.radius)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        return self.radius * absolute_sum(point(self, y, "y"))

    def __repr__(self) -> str:
        return f"LInfBall(radius={self.radius!r})"
