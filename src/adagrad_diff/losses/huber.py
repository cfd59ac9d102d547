"""The Huber loss: quadratic near zero, linear far away."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .linear import LinearModel


class Huber(LinearModel):
    r"""The mean of the Huber loss of t = A x - b.

    .. math:: \tfrac12 t^2 \text{ if } |t| \le \delta, \text{ else } \delta |t| - \tfrac12 \delta^2

    Parameters
    ----------
    delta : float
        Where the loss turns linear. `LinearModel` explains the other parameters.

    Examples
    --------
    >>> from adagrad_diff import Huber
    >>> f, g = Huber([[1.0], [1.0]], [0.5, 3.0], delta=1.0).value_and_grad([0.0])
    >>> f, g.tolist()
    (1.3125, [-0.75])
    """

    smoothness = 1.0
    translates = True
    theta_name = "delta"

    def __init__(self, A: Any, b: Any, delta: float = 1.0, **options: Any):
        super().__init__(A, b, **options)
        self.theta = self.delta = _check.positive(delta, "delta", "Huber")

    @staticmethod
    def scalar(z, b, theta):
        t = z - b
        slope = np.maximum(-theta, np.minimum(t, theta))
        return slope * (t - 0.5 * slope), slope

    @staticmethod
    def curvature(z, b, theta):
        """1 where the loss is quadratic, else 0"""
        return np.where(np.abs(z - b) <= theta, 1.0, 0.0)

    @staticmethod
    def slopes(b, theta):
        return -theta, theta

    @staticmethod
    def conjugate(u, b, theta):
        """u^2 / 2 + b u for |u| <= delta"""
        return np.where(np.abs(u) <= theta, u * (0.5 * u + b), np.inf)
