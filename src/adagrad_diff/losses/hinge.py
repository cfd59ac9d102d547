"""The hinge loss of support vector machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from .linear import BinaryModel


class Hinge(BinaryModel):
    r"""The mean of :math:`\max(0, 1 - b_j z_j)`, z = A x, b in {-1, +1}. Not smooth.

    `LinearModel` explains the parameters.

    Examples
    --------
    >>> from adagrad_diff import Hinge
    >>> f, g = Hinge([[1.0], [-1.0]], [1, -1]).value_and_grad([0.5])
    >>> f, g.tolist()
    (0.5, [-1.0])
    """

    @staticmethod
    def scalar(z: float, b: float, theta: float) -> tuple[float, float]:
        slack = 1.0 - b * z
        active = 1.0 * (slack > 0.0)  # a factor, because a branch would be hard to predict
        return active * slack, -active * b

    @staticmethod
    def jump(b: np.ndarray, theta: float) -> tuple[Any, Any]:
        """The nonsmooth point is z = b, where b z = 1."""
        return np.minimum(0.0, -b), np.maximum(0.0, -b)

    @staticmethod
    @np.errstate(over="ignore")  # an overflow to infinity is correct
    def conjugate(u: np.ndarray, b: np.ndarray, theta: float) -> np.ndarray:
        """b u for b u in [-1, 0]"""
        p = b * u
        return np.where((p >= -1.0) & (p <= 0.0), p, np.inf)
