"""The squared hinge loss."""

import numpy as np

from .linear import BinaryModel


class SquaredHinge(BinaryModel):
    r"""The mean of :math:`\max(0, 1 - b_j z_j)^2`, z = A x, b in {-1, +1}.

    `LinearModel` explains the parameters.

    Examples
    --------
    >>> from adagrad_diff import SquaredHinge
    >>> f, g = SquaredHinge([[1.0], [-1.0]], [1, -1]).value_and_grad([0.5])
    >>> f, g.tolist()
    (0.25, [-1.0])
    """

    smoothness = 2.0

    @staticmethod
    def scalar(z, b, theta):
        slack = 1.0 - b * z
        slack *= slack > 0.0
        return slack * slack, -2.0 * b * slack

    @staticmethod
    def curvature(z, b, theta):
        """2 where b z < 1, else 0"""
        return np.where(b * z < 1.0, 2.0, 0.0)

    @staticmethod
    def slopes(b, theta):
        return np.where(b > 0, -np.inf, 0.0), np.where(b > 0, 0.0, np.inf)

    @staticmethod
    def conjugate(u, b, theta):
        """p + p^2 / 4, p = b u <= 0"""
        p = b * u
        return np.where(p <= 0.0, p * (1.0 + 0.25 * p), np.inf)
