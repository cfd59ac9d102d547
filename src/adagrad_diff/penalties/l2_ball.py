"""The Euclidean ball: the projection in a diagonal metric shrinks each coordinate by its own factor."""

from __future__ import annotations

from .._check import nonnegative
from ._norm import euclidean, indicator, tolerance
from ._roots import by_rows, exact, l2_ball_rows
from .base import Penalty, as_float


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

    def value(self, x):
        x = as_float(x)
        return indicator(euclidean(x) <= self.radius * (1.0 + tolerance(x)))

    def prox(self, z, step, out=None):
        return by_rows(l2_ball_rows, z, step, out, self.radius, exact(z))

    def conjugate(self, y):
        return self.radius * euclidean(as_float(y))
