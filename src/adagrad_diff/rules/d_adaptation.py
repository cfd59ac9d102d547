"""D-Adaptation: dual averaging with a lower bound on the distance to a solution as step size."""

from typing import Any

import numpy as np

from .._check import positive
from .base import StepSizeFreeRule, fixed, frozen


@frozen
class DAdaptation(StepSizeFreeRule):
    r"""AdaGrad by dual averaging, whose step size is a lower bound on the distance to a solution.

    .. math:: a_n^2 = a_{n-1}^2 + (g^n)^2, \quad s^n = s^{n-1} + d_n g^n, \qquad
              x^{n+1} = x^1 - \frac{s^n}{a_n + \varepsilon}, \qquad
              d_{n+1} = \max\Big(d_n, \frac{\sum_i (s_i^n)^2 / (a_{n,i} + \varepsilon)
              - \sum_{k \le n} d_k^2 \sum_i (g_i^k)^2 / (a_{k,i} + \varepsilon)}{\|s^n\|_1}\Big)

    with a_0^2 = `start`. There is no step size to choose. The prox is our extension, that of
    `DualAveraging` with the weights d_k; d_n is a lower bound for f alone. If d
    (`state.memory["d"]`) stays at its start, or never stops growing, this rule does not fit the
    problem.

    Parameters
    ----------
    eps : float
        Added to every weight, outside the root.
    d0 : float
        The first value of d: smaller than the distance to any solution.
    start : float
        The first value of the sums of squares.

    Examples
    --------
    >>> from adagrad_diff import DAdaptation, minimize
    >>> f = lambda x: (abs(x).sum(), (x > 0) * 2.0 - 1.0)
    >>> result = minimize(f, [3.0, -4.0], rule=DAdaptation(), max_iter=2000)
    >>> bool(result.fun_best < 0.1)
    True

    References
    ----------
    Defazio, Mishchenko: Learning-rate-free learning by D-Adaptation, 2023.
    The constants are those of the authors' dadaptation.
    """

    _constraints = {"d0": positive, "start": positive}

    eps: float = 1e-6
    blocks: Any = fixed(None)
    d0: float = 1e-6
    start: float = 1e-6

    def init(self, x, g):
        zeros, number = np.zeros_like(g), np.zeros(g.shape[1:])
        return {
            "total": zeros + self.start,
            "sum": zeros,
            "origin": x,
            "d": number + self.d0,
            "weight": number,
            "squares": number,
        }

    def update(self, memory, n, x, g):
        d, total = memory["d"], memory["total"] + g**2
        gradients, weight = memory["sum"] + d * g, memory["weight"] + d
        inverse = 1.0 / (self.eps + np.sqrt(total))
        squares = memory["squares"] + d**2 * np.sum(g**2 * inverse, axis=0)
        d = larger_distance(d, np.sum(gradients**2 * inverse, axis=0) - squares, gradients)
        new = {"total": total, "sum": gradients, "d": d, "weight": weight, "squares": squares}
        return memory | new, memory["origin"] - inverse * gradients, weight * inverse


def larger_distance(d, gain, gradients):
    """Return max(d, gain / ||gradients||_1), or d while all gradients are zero."""
    return np.fmax(d, gain / np.sum(np.abs(gradients), axis=0))  # 0 / 0 is NaN, which fmax ignores
