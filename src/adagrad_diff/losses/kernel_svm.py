"""The dual of a kernel support vector machine, as the paper states it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ..linalg import as_source
from ..penalties import Box
from .linear import check_labels
from .quadratic import Quadratic


class KernelSVMDual(Quadratic):
    r"""The dual of hinge loss + :math:`\tfrac{\lambda}{2}\|h\|^2` over a kernel space.

    .. math:: f(\alpha) = \tfrac{1}{2\lambda}\alpha^\top K \alpha - \langle\alpha, b\rangle,
              \qquad 0 \le b_j \alpha_j \le 1/N

    The constraint is the penalty `box()`, and the classifier is
    :math:`h = \tfrac1\lambda \sum_j \alpha_j k(a_j, \cdot)`.

    Parameters
    ----------
    K : array (N, N)
        Kernel matrix.
    b : array (N,)
        Labels -1 and +1.
    lam : float
        Strength of the ridge term of the primal problem.

    Examples
    --------
    >>> from adagrad_diff import KernelSVMDual, minimize
    >>> dual = KernelSVMDual([[1.0, 0.0], [0.0, 1.0]], [1, -1], lam=1.0)
    >>> minimize(dual, penalty=dual.box(), eta=0.1, max_iter=100).x.round(6).tolist()
    [0.5, -0.5]
    """

    def __init__(self, K: Any, b: Any, lam: float):
        self.lam = _check.positive(lam, "lam", "KernelSVMDual")
        self.factor = 1.0 / self.lam
        if np.isinf(self.factor):
            raise ValueError(
                f"The 'lam' parameter of KernelSVMDual is too small: 1 / {self.lam} is infinite."
            )
        K = as_source(K, "K")
        labels = _check.vector(b, "b", K.shape[0], what="one value per row of K")
        super().__init__(K, check_labels(labels, "KernelSVMDual"))
        self.b = self.c

    def box(self) -> Box:
        """Return the constraint 0 <= b_j alpha_j <= 1/N as a penalty."""
        bound = self.b.astype(np.float64) / len(self.b)
        return Box(np.minimum(bound, 0.0), np.maximum(bound, 0.0))
