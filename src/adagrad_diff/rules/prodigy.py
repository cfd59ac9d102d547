"""Prodigy: D-Adaptation for Adam, with a faster estimate of the distance."""

from typing import Any

import numpy as np

from .._check import fraction, positive
from .base import StepSizeFreeRule, fixed, frozen, moving_average
from .d_adaptation import larger_distance


@frozen
class Prodigy(StepSizeFreeRule):
    r"""Adam, whose step size is an estimate of the distance to a solution.

    .. math:: m = \beta_1 m + (1 - \beta_1) d_n g^n, \quad v = \beta_2 v + (1 - \beta_2) (d_n
              g^n)^2, \qquad r = \beta_3 r + d_n^2 \langle g^n, x^1 - x^n \rangle, \quad s = \beta_3
              s + d_n^2 g^n, \qquad d_{n+1} = \max(d_n, r / \|s\|_1), \quad x^{n+1} = x^n -
              \frac{d_n m}{\sqrt v + d_{n+1} \varepsilon}

    There is no step size to choose. The prox is our extension, without theory. Its step is
    :math:`d_n^2 / (\sqrt v + d_{n+1} \varepsilon)`, because m is d times a gradient. If d
    (`state.memory["d"]`) stays at its start, or never stops growing, this rule does not fit the
    problem.

    Parameters
    ----------
    eps : float
        Added to every weight, outside the root, in units of d.
    beta1, beta2 : float
        The weights of the old averages, in [0, 1); beta3 is the root of beta2.
    d0 : float
        The first value of d: smaller than the distance to any solution.

    Examples
    --------
    >>> from adagrad_diff import Prodigy, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=Prodigy(), max_iter=500)
    >>> bool(result.fun_best < 1e-2)
    True

    References
    ----------
    Mishchenko, Defazio: Prodigy: an expeditiously adaptive parameter-free
    learner, 2024. The constants are those of the authors' prodigyopt.
    """

    _constraints = {"beta1": fraction, "beta2": fraction, "d0": positive}

    blocks: Any = fixed(None)
    beta1: float = 0.9
    beta2: float = 0.999
    d0: float = 1e-6

    def init(self, x, g):
        zeros, number = np.zeros_like(g), np.zeros(g.shape[1:])
        return {
            "mean": zeros,
            "total": zeros,
            "sum": zeros,
            "origin": x,
            "d": number + self.d0,
            "gain": number,
        }

    def update(self, memory, n, x, g):
        d, beta3 = memory["d"], self.beta2**0.5
        mean = moving_average(memory["mean"], d * g, self.beta1)  # m
        total = moving_average(memory["total"], (d * g) ** 2, self.beta2)  # v
        share = d**2 / self.d0  # r and s are divided by d0, which changes nothing but their range
        gain = beta3 * memory["gain"] + share * np.sum(g * (memory["origin"] - x), axis=0)  # r
        gradients = beta3 * memory["sum"] + share * g  # s
        new_d = larger_distance(d, gain, gradients)
        inverse = 1.0 / (np.sqrt(total) + new_d * self.eps)
        new = {"mean": mean, "total": total, "sum": gradients, "d": new_d, "gain": gain}
        return memory | new, x - d * mean * inverse, d**2 * inverse
