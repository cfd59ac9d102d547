"""AdaGrad-Norm: one weight for all coordinates, from the norms of gradients."""

import numpy as np

from .._check import positive
from .base import OneStepRule, frozen, squared_norm


@frozen
class AdaGradNorm(OneStepRule):
    r"""Accumulate the squared norms of gradients: one step for all coordinates.

    .. math:: b_n^2 = b_{n-1}^2 + \|g^n\|^2, \qquad x^{n+1} = \text{prox}_{\eta\varphi / b_n}(x^n -
              \eta\, g^n / b_n)

    The prox is our extension: the reference has f alone. For a nonsmooth f the last iterate is only
    known to be within O(n^{-1/4}), so also look at `x_avg` and `x_best`.

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`.
    b0 : float
        The weight before the first gradient; positive. If it is small, the first step has length
        eta.

    Examples
    --------
    >>> from adagrad_diff import AdaGradNorm, minimize
    >>> f = lambda x: (0.5 * x @ x, x)
    >>> result = minimize(f, [3.0, -4.0], rule=AdaGradNorm(eta=5.0), max_iter=200)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Ward, Wu, Bottou: AdaGrad stepsizes: sharp convergence over nonconvex landscapes, 2020.
    """

    _constraints = {"b0": positive}

    b0: float = 1e-8

    def init(self, x, g):
        return {"total": np.full(g.shape[1:], self.b0**2)}

    def update(self, memory, n, x, g):
        total = memory["total"] + squared_norm(g)
        step = self.step_size(n) / np.sqrt(total)
        return {"total": total}, x - step * g, step
