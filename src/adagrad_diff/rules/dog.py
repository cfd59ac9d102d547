"""DoG: distance over gradients. There is no step size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ._parameters import positive
from .adagrad import AdaGrad
from .memory import BLOCK, POINT, Memory, View


@dataclass(frozen=True, eq=False)
class DoG(AdaGrad):
    r"""The distance from the start over the accumulated size of gradients, and an average of the iterates as its answer.

    .. math:: \text{step}^n = \frac{\bar r_n}{\sqrt{\varepsilon + \sum_{k=1}^n \|g^k\|^2}}, \qquad
              \bar r_n = \max\Big(\rho (1 + \|x^1\|), \max_{k \le n} \|x^k - x^1\|\Big)

    The answer is `result.x_avg`, :math:`\bar x_t = (1 - c_t) \bar x_{t-1} + c_t x^{t+1}` with
    :math:`c_t = (1 + \gamma) / (t + \gamma)`, t = 1, 2, ...: an average with weights that grow like :math:`t^\gamma`. The last
    iterate may be much worse. Projections onto sets are proved, other penalties are our extension.

    Parameters
    ----------
    eps : float
        Inside the root.
    blocks
        "all", or blocks as for `AdaGradDiff`: each then has its own distance and its own gradients, which is the reference's
        LDoG.
    first : float
        rho, by which the first move is small.
    gamma : float
        The power of the average's weights.

    Examples
    --------
    >>> from adagrad_diff import DoG, minimize
    >>> result = minimize(lambda x: (abs(x).sum(), (x > 0) * 2.0 - 1.0), [3.0, -4.0], rule=DoG(), max_iter=2000)
    >>> bool(abs(result.x_avg).sum() < 0.02)
    True

    References
    ----------
    Ivgi, Hinder, Carmon: DoG is SGD's best friend: a parameter-free dynamic step size schedule, 2023. Shamir, Zhang: Stochastic
    gradient descent for non-smooth optimization, 2013 (the average).
    """

    memory: ClassVar[dict[str, str]] = {"total": BLOCK, "far": BLOCK, "first": POINT, "average": POINT}
    along_gradient: ClassVar[bool] = True

    eta: Any = field(default=None, init=False)
    blocks: Any = "all"
    scale: Any = field(default=None, init=False)
    first: float = 1e-6
    gamma: float = 8.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "first", "gamma")

    def begin(self, memory: Memory, now: View) -> None:
        """x^1, eps, and a first distance rho (1 + ||x^1||)"""
        memory.first = memory.average = now.x
        with np.errstate(over="ignore"):
            memory.far = self.first * (1.0 + np.sqrt(now.sums(memory.first**2)))
        memory.total = self.eps

    def learn(self, memory: Memory, now: View) -> None:
        """total_i += ||g_i^n||^2;  far_i = max(far_i, ||x_i^n - x_i^1||);  the average takes in x^n, n > 1"""
        super().learn(memory, now)
        far, first, average, x = now.columns(memory.far, memory.first, memory.average, now.x)
        kernels.keep_distances(far, now.rows, x, first)
        kernels.average(average, polynomial(self.gamma, now), x)

    def move(self, memory: Memory, now: View) -> None:
        """step = far / sqrt(total);  point = x - step * g"""
        total, far, *points = now.columns(memory.total, memory.far, now.x, now.g, now.step, now.point)
        kernels.distance_forward(total, far, now.rows, 0.0, *points)


def polynomial(gamma: float, now: View) -> np.ndarray:
    """The weight (1 + gamma) / (t + gamma) of x^n in an average of x^2, x^3, ..., t = n - 1; x^1 is what it begins with."""
    t = np.broadcast_to(np.asarray(now.n, np.float64) - 1.0, now.eta.shape)
    return np.where(t > 0, (1.0 + gamma) / (np.maximum(t, 1.0) + gamma), 0.0)
