"""AdaGrad with a delay: the step does not depend on the newest gradient."""

import numpy as np

from .._check import number, positive
from .base import UnscaledRule, fixed, frozen


def half_to_one(value, name, owner):
    """Return a number from 0.5 to 1, or raise."""
    return number(value, name, owner, "a number from 0.5 to 1", lambda power: 0.5 <= power <= 1)


@frozen
class DelayedAdaGrad(UnscaledRule):
    r"""Accumulate squared gradients except the newest: a step does not depend on its gradient.

    .. math:: w_i^n = \Big(\beta + \sum_{k=1}^{n-1} \|g_i^k\|^2\Big)^{p}, \qquad \text{step}_i =
              \eta / w_i^n

    The prox is our extension: the reference has f alone. The first step is eta / beta^p, whatever
    the gradient is.

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`: the reference's alpha.
    beta : float
        The first value of the sums; positive.
    power : float
        p, from 1/2 to 1: the reference's 1/2 + epsilon.
    blocks
        As for `AdaGradDiff`; "all" is the reference's step by norms.

    Examples
    --------
    >>> from adagrad_diff import DelayedAdaGrad, minimize
    >>> f = lambda x: (0.5 * x @ x, x)
    >>> result = minimize(f, [3.0, -4.0], rule=DelayedAdaGrad(eta=1.0), max_iter=200)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Li, Orabona: On the convergence of stochastic gradient descent with adaptive stepsizes, 2019.
    """

    _constraints = {"beta": positive, "power": half_to_one}

    beta: float = 1.0
    power: float = 0.5
    eps: float = fixed(1e-8)

    def init(self, x, g):
        return {"total": np.full_like(self.block_sums(g), self.beta)}

    def update(self, memory, n, x, g):
        step = self.step_size(n) / self.spread(memory["total"]) ** self.power
        total = memory["total"] + self.block_sums(g**2)  # for the next step
        return {"total": total}, x - step * g, step
