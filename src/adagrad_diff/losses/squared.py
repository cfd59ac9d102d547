"""Least squares."""

import numpy as np

from .linear import LinearModel


class Squared(LinearModel):
    r"""The mean of :math:`\tfrac12 (z_j - b_j)^2`, z = A x.

    `LinearModel` explains the parameters.

    Examples
    --------
    >>> from adagrad_diff import Squared
    >>> f, g = Squared([[1.0], [2.0]], [1.0, 1.0]).value_and_grad([1.0])
    >>> f, g.tolist()
    (0.25, [1.0])
    """

    smoothness = 1.0
    translates = True

    @staticmethod
    def scalar(z, b, theta):
        t = z - b
        return 0.5 * t * t, t

    @staticmethod
    def curvature(z, b, theta):
        """1"""
        return np.ones_like(z)

    @staticmethod
    def conjugate(u, b, theta):
        """u^2 / 2 + b u"""
        return u * (0.5 * u + b)
