"""Poisson regression with a log link."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .linear import LinearModel


class Poisson(LinearModel):
    r"""The mean of :math:`e^{z_j} - b_j z_j`, z = A x, b >= 0: Poisson deviance up to a constant.

    Its gradient is not Lipschitz continuous, and where e^z overflows the value is inf, which ends a
    run with a status. `LinearModel` explains the parameters.

    Examples
    --------
    >>> from adagrad_diff import Poisson
    >>> f, g = Poisson([[1.0], [1.0]], [0, 3]).value_and_grad([0.0])
    >>> f, g.tolist()
    (1.0, [-0.5])
    """

    differentiable = True
    predicts_b = False

    def check_targets(self, b: Any, samples: int) -> np.ndarray:
        targets = super().check_targets(b, samples)
        _check.entries(targets >= 0, targets, "b", "Poisson needs targets >= 0")
        return targets

    @staticmethod
    def scalar(z, b, theta):
        rate = np.exp(z)
        return rate - b * z, rate - b

    @staticmethod
    def curvature(z, b, theta):
        """exp(z)"""
        return np.exp(z)

    @staticmethod
    def slopes(b, theta):
        return -b, np.inf

    @staticmethod
    def conjugate(u, b, theta):
        """v log v - v, v = b + u >= 0"""
        from scipy.special import entr

        v = b + u
        return -entr(v) - v
