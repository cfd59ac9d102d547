"""AdaDelta: steps as long as recent steps, in the units of x."""

from typing import Any

import numpy as np

from .._check import fraction
from .base import UnscaledRule, frozen, moving_average


@frozen
class AdaDelta(UnscaledRule):
    r"""Average squared gradients and squared steps, with exponentially decreasing weights.

    .. math:: v_i^n = \rho v_i^{n-1} + (1 - \rho) \|g_i^n\|^2, \qquad u_i^n = \rho u_i^{n-1} + (1 -
              \rho) \|(x_i^n - x_i^{n-1}) / \eta\|^2, \qquad w_i^n = \frac{\sqrt{v_i^n +
              \varepsilon}}{\sqrt{u_i^n + \varepsilon}}, \quad \text{step}_i = \eta / w_i^n

    The prox is our extension: the reference has f alone, and no theory. The steps x^n - x^{n-1}
    include the prox. (If eta is a number, this is what PyTorch does. If it is a function of n, all
    steps are divided by the newest eta.)

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`. Published: 1.
    rho : float
        The weight of the old average, in [0, 1).
    eps : float
        Added inside both roots. It determines the first steps.
    blocks
        As for `AdaGradDiff`.

    Examples
    --------
    >>> from adagrad_diff import AdaDelta, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=AdaDelta(), max_iter=2000)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Zeiler: ADADELTA: an adaptive learning rate method, 2012. The constants
    are those of torch.optim.Adadelta.
    """

    published = 1.0
    _constraints = {"rho": fraction}

    eta: Any = 1.0
    eps: float = 1e-6
    rho: float = 0.9

    def init(self, x, g):
        zeros = self.block_sums(np.zeros_like(g))
        return {"last": x, "total": zeros, "moved": zeros}

    def update(self, memory, n, x, g):
        total = moving_average(memory["total"], self.block_sums(g**2), self.rho)  # v
        squares = self.block_sums((x - memory["last"]) ** 2)
        moved = moving_average(memory["moved"], squares, self.rho)  # eta^2 u
        ratio = (moved + self.step_size(n) ** 2 * self.eps) / (total + self.eps)
        step = self.spread(np.sqrt(ratio))
        return {"last": x, "total": total, "moved": moved}, x - step * g, step
