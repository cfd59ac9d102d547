"""Prodigy: D-Adaptation for Adam, with a quicker estimate of the distance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._parameters import fraction, positive
from .base import Arrays, Rule


@dataclass(frozen=True, eq=False)
class Prodigy(Rule):
    r"""Adam, whose step size is an estimate of the distance to a solution. There is none to choose.

    .. math:: m = \beta_1 m + (1 - \beta_1) d_n g^n, \quad v = \beta_2 v + (1 - \beta_2) (d_n g^n)^2, \qquad
              r = \beta_3 r + d_n^2 \langle g^n, x^1 - x^n \rangle, \quad s = \beta_3 s + d_n^2 g^n, \qquad
              d_{n+1} = \max(d_n, r / \|s\|_1), \quad x^{n+1} = x^n - \frac{d_n m}{\sqrt v + d_{n+1} \varepsilon}

    The prox is our extension, with the step :math:`d_n^2 / (\sqrt v + d_{n+1} \varepsilon)`, for m is d times a gradient;
    there is no theory for it. If d (`state.memory["d"]`) stays where it began, or never stops growing, this rule does not fit
    the problem.

    Parameters
    ----------
    eps : float
        Added to every weight, outside the root, in units of d.
    beta1, beta2 : float
        How much of the averages stays, in [0, 1); beta3 is the root of beta2.
    d0 : float
        What d begins with: smaller than the distance to any solution.

    Examples
    --------
    >>> from adagrad_diff import Prodigy, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=Prodigy(), max_iter=500)
    >>> bool(result.fun_best < 1e-2)
    True

    References
    ----------
    Mishchenko, Defazio: Prodigy: an expeditiously adaptive parameter-free learner, 2024. The constants are those of the
    authors' prodigyopt.
    """

    eta: Any = field(default=None, init=False)
    blocks: Any = field(default=None, init=False)
    scale: Any = field(default=None, init=False)
    beta1: float = 0.9
    beta2: float = 0.999
    d0: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        fraction(self, "beta1", "beta2")
        positive(self, "d0")

    def init(self, x: Any, g: Any) -> Arrays:
        zeros, number = np.zeros_like(g), np.zeros(g.shape[1:])
        memory = {"mean": zeros, "total": zeros, "sum": zeros, "first": x}
        return memory | {"d": np.full_like(number, self.d0), "gain": number}

    def update(self, memory: Arrays, n: Any, x: Any, g: Any) -> tuple[Arrays, Any, Any]:
        d, beta3 = memory["d"], self.beta2**0.5
        mean = self.beta1 * memory["mean"] + (1 - self.beta1) * d * g  # m
        total = self.beta2 * memory["total"] + (1 - self.beta2) * (d * g) ** 2  # v
        share = d**2 / self.d0  # r and s are divided by d0, which changes nothing but their range
        gain = beta3 * memory["gain"] + share * np.sum(g * (memory["first"] - x), axis=0)  # r
        gradients = beta3 * memory["sum"] + share * g  # s
        bound = gain / np.sum(np.abs(gradients), axis=0)
        new_d = np.where(bound > d, bound, d)  # the bound is NaN while all gradients are zero
        inverse = 1.0 / (np.sqrt(total) + new_d * self.eps)
        new = {"mean": mean, "total": total, "sum": gradients, "d": new_d, "gain": gain}
        return memory | new, x - d * mean * inverse, d**2 * inverse
