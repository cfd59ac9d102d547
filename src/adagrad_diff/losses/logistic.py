"""The logistic loss."""

import numpy as np

from ..linalg.elementary import decay, log1p_unit
from .linear import BinaryModel


class Logistic(BinaryModel):
    r"""Logistic regression: the mean of :math:`\log(1 + \exp(-b_j z_j))`, z = A x, b in {-1, +1}.

    `LinearModel` explains the parameters.

    Examples
    --------
    >>> from adagrad_diff import Logistic
    >>> f, g = Logistic([[1.0], [-1.0]], [1, -1]).value_and_grad([0.0])
    >>> round(f, 6), g.tolist()
    (0.693147, [-0.5])
    """

    smoothness = 0.25

    @staticmethod
    def scalar(z, b, theta):
        margin = b * z
        small = decay(-abs(margin))  # at most 1: no overflow
        value = log1p_unit(small) - np.minimum(margin, 0.0)
        return value, -b * (small + (1.0 - small) * (margin <= 0.0)) / (1.0 + small)

    @staticmethod
    def curvature(z, b, theta):
        """s (1 - s), s = 1 / (1 + exp(-z))"""
        small = np.exp(-np.abs(z))
        return small / (1.0 + small) ** 2

    @staticmethod
    def slopes(b, theta):
        return np.minimum(0.0, -b), np.maximum(0.0, -b)

    @staticmethod
    def conjugate(u, b, theta):
        """p log p + (1 - p) log(1 - p), p = -b u in [0, 1]"""
        from scipy.special import entr

        return -entr(-b * u) - entr(1.0 + b * u)
