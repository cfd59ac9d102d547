"""The pinball loss of quantile regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .linear import LinearModel


class Quantile(LinearModel):
    r"""The mean pinball loss :math:`\max(\tau t_j, (\tau - 1) t_j)` of t = b - A x. Not smooth.

    tau = 0.5 is half the absolute deviation.

    Parameters
    ----------
    tau : float
        The quantile, strictly between 0 and 1. `LinearModel` explains the other parameters.

    Examples
    --------
    >>> from adagrad_diff import Quantile
    >>> f, g = Quantile([[1.0]], [2.0], tau=0.9).value_and_grad([0.0])
    >>> f, g.tolist()
    (1.8, [-0.9])
    """

    translates = True
    piecewise_linear = True
    theta_name = "tau"

    def __init__(self, A: Any, b: Any, tau: float = 0.5, **options: Any):
        super().__init__(A, b, **options)
        wanted = "strictly between 0 and 1"
        self.theta = self.tau = _check.number(tau, "tau", "Quantile", wanted, lambda x: 0 < x < 1)

    @staticmethod
    def scalar(z, b, theta):
        t = b - z
        slope = theta * (t > 0.0) - (1.0 - theta) * (t < 0.0)  # zero at the nonsmooth point
        return slope * t, -slope

    @staticmethod
    def slopes(b, theta):
        return -theta, 1.0 - theta

    @staticmethod
    def conjugate(u, b, theta):
        """b u for -tau <= u <= 1 - tau"""
        return np.where((u >= -theta) & (u <= 1.0 - theta), b * u, np.inf)
