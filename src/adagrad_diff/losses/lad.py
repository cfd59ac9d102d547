"""Least absolute deviations."""

import numpy as np

from .linear import LinearModel


class LAD(LinearModel):
    r"""The mean of :math:`|z_j - b_j|`, z = A x. Not smooth.

    `LinearModel` explains the parameters.

    Examples
    --------
    >>> from adagrad_diff import LAD
    >>> f, g = LAD([[1.0], [2.0]], [1.0, 1.0]).value_and_grad([1.0])
    >>> f, g.tolist()
    (0.5, [1.0])
    """

    translates = True
    piecewise_linear = True

    @staticmethod
    def scalar(z, b, theta):
        t = z - b
        return abs(t), 1.0 * (t > 0.0) - 1.0 * (t < 0.0)  # zero at the nonsmooth point

    @staticmethod
    def slopes(b, theta):
        return -1.0, 1.0

    @staticmethod
    def conjugate(u, b, theta):
        """b u for |u| <= 1"""
        return np.where(np.abs(u) <= 1.0, b * u, np.inf)
