"""Poisson regression with a log link."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .linear import LinearModel


class Poisson(LinearModel):
    r"""The mean of :math:`e^{z_j} - b_j z_j`, z = A x, b >= 0: the Poisson deviance up to a constant of b.

    Its gradient is not Lipschitz continuous, and where e^z overflows the value is inf, which ends a run with a status.
    `LinearModel` explains the parameters.

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
        _check.first_where(
            targets < 0, targets, lambda j, v: f"Poisson needs targets b >= 0, but b[{j}] is {v}."
        )
        return targets

    @staticmethod
    def scalar(z: float, b: float, theta: float) -> tuple[float, float]:
        rate = np.exp(z)
        return rate - b * z, rate - b

    @staticmethod
    @np.errstate(over="ignore")  # an overflow to infinity is correct
    def curvature(z: np.ndarray, b: np.ndarray, theta: float) -> np.ndarray:
        """exp(z)"""
        return np.asarray(np.exp(z))

    @staticmethod
    def slopes(b: np.ndarray, theta: float) -> tuple[Any, Any]:
        return -b, np.inf

    @staticmethod
    def conjugate(u: np.ndarray, b: np.ndarray, theta: float) -> np.ndarray:
        """v log v - v, v = b + u >= 0"""
        from scipy.special import xlogy

        v = b + u
        return np.where(v >= 0.0, xlogy(np.maximum(v, 0.0), np.maximum(v, 0.0)) - v, np.inf)
