"""A constant step: proximal gradient descent."""

from __future__ import annotations

import math

from .._check import count, positive
from .base import OneStepRule, frozen


@frozen
class Constant(OneStepRule):
    r"""Proximal (sub)gradient descent with one step for all coordinates.

    .. math:: x^{n+1} = \text{prox}_{\eta\varphi}(x^n - \eta g^n)

    The references prove convergence with the proximal step: for a smooth f with eta <= 1/L
    (`Constant.smooth`; the objective then never grows), and for the average of N iterates with a
    Lipschitz f (`Constant.nonsmooth`).

    Parameters
    ----------
    eta : float, array or callable
        The step: a number, one per trajectory, or a function n -> eta_n, as for `AdaGradDiff`.

    Examples
    --------
    >>> from adagrad_diff import Constant, minimize
    >>> f = lambda x: (0.5 * x @ x, x)
    >>> result = minimize(f, [3.0, -4.0], rule=Constant.smooth(1.0), max_iter=2)
    >>> print(result.x)
    [0. 0.]
    >>> print(Constant.nonsmooth(distance=3.0, bound=1.0, iterations=900).eta)
    0.1

    References
    ----------
    Beck, Teboulle: A fast iterative shrinkage-thresholding algorithm for
    linear inverse problems, 2009 (ISTA). Nesterov: Introductory lectures on convex optimization,
    2004, section 3.2.3.
    """

    @classmethod
    def smooth(cls, L: float) -> Constant:
        """Return the rule with the step 1 / L, for a gradient with Lipschitz constant L."""
        return cls(1.0 / positive(L, "L", "Constant"))

    @classmethod
    def nonsmooth(cls, distance: float, bound: float, iterations: int) -> Constant:
        """Return the rule with the step D / (G sqrt(N)).

        D bounds the distance to a solution, G the norms of subgradients, N is the number of
        iterations.
        """
        distance = positive(distance, "distance", "Constant")
        bound = positive(bound, "bound", "Constant")
        iterations = count(iterations, "iterations", "Constant", least=1)
        return cls(distance / (bound * math.sqrt(iterations)))

    def init(self, x, g):
        return {}

    def update(self, memory, n, x, g):
        step = self.step_size(n)
        return {}, x - step * g, step
