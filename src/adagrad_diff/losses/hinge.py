"""The hinge loss of support vector machines."""

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

    piecewise_linear = True

    @staticmethod
    def scalar(z, b, theta):
        slack = 1.0 - b * z
        active = 1.0 * (slack > 0.0)  # a factor, because a branch would be hard to predict
        return active * slack, -active * b

    @staticmethod
    def slopes(b, theta):
        return np.minimum(0.0, -b), np.maximum(0.0, -b)

    @staticmethod
    def conjugate(u, b, theta):
        """b u for b u in [-1, 0]"""
        p = b * u
        return np.where((p >= -1.0) & (p <= 0.0), p, np.inf)
