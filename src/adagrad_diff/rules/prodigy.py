"""Prodigy: D-Adaptation for Adam, with a quicker estimate of the distance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ._parameters import fraction, positive
from .base import Rule
from .memory import NUMBER, POINT, Memory, View


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

    memory: ClassVar[dict[str, str]] = {
        "total": POINT,  # v
        "mean": POINT,  # m
        "pull": POINT,  # s / d0
        "first": POINT,
        "d": NUMBER,
        "d_last": NUMBER,  # the one that m, v and the move are made with
        "gain": NUMBER,  # r / d0
    }

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

    def begin(self, memory: Memory, now: View) -> None:
        """x^1 and d_1"""
        memory.first, memory.d, memory.d_last = now.x, self.d0, self.d0

    def learn(self, memory: Memory, now: View) -> None:
        """The averages with d_n, and d_{n+1}"""
        arrays = now.columns(memory.mean, memory.total, memory.pull, now.x, memory.first, now.g)
        betas, d, sums = (self.beta1, self.beta2, math.sqrt(self.beta2)), memory.d.reshape(-1), np.empty((2, now.eta.size))
        with np.errstate(all="ignore"):  # no gradient yet, or none that is finite
            share = memory.d**2 / self.d0
            kernels.learn_prodigy(*arrays[:3], betas, d, share.reshape(-1), *arrays[3:], sums)
            inner, size = (values.reshape(memory.d.shape) for values in sums)
            memory.gain = betas[2] * memory.gain + share * inner
            estimate = memory.gain / size
        memory.d_last = memory.d
        memory.d = np.where(estimate > memory.d, estimate, memory.d)

    def move(self, memory: Memory, now: View) -> None:
        """step = d_n^2 / (sqrt(v) + d_{n+1} eps);  point = x - step * m / d_n"""
        total, mean, x, step, point = now.columns(memory.total, memory.mean, now.x, now.step, now.point)
        d, eps = memory.d_last.reshape(-1), self.eps * memory.d.reshape(-1)
        with np.errstate(over="ignore"):  # d may grow without end
            fixes, eta = np.stack([1.0 / d, np.ones_like(d)]), d * d
        kernels.moment_forward(total, now.rows, eps, eta, fixes, None, mean, x, step, point)
