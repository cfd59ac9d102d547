"""AdaGrad whose step does not know the newest gradient."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ._parameters import positive, within
from .base import Rule
from .memory import Memory, View


@dataclass(frozen=True, eq=False)
class DelayedAdaGrad(Rule):
    r"""Accumulate squared gradients, but for the newest: the step and the gradient that it multiplies are then independent.

    .. math:: w_i^n = \Big(\beta + \sum_{k=1}^{n-1} \|g_i^k\|^2\Big)^{p}, \qquad \text{step}_i = \eta / w_i^n

    The prox is our extension: the reference has f alone. The first step knows nothing, and is eta / beta^p.

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`: the reference's alpha.
    beta : float
        What the sums begin with; positive.
    power : float
        p, from 1/2 to 1: the reference's 1/2 + epsilon.
    blocks
        As for `AdaGradDiff`; "all" is the reference's step by norms.

    Examples
    --------
    >>> from adagrad_diff import DelayedAdaGrad, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=DelayedAdaGrad(eta=1.0), max_iter=200)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Li, Orabona: On the convergence of stochastic gradient descent with adaptive stepsizes, 2019.
    """

    along_gradient: ClassVar[bool] = True

    beta: float = 1.0
    power: float = 0.5
    eps: float = field(default=0.0, init=False)
    scale: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "beta")
        within(self, ("power",), 0.5, 1.0, "a number from 0.5 to 1")

    @property
    def least_weight(self) -> tuple[str, float]:
        """The sums begin with beta."""
        return "beta", self.beta**self.power

    def begin(self, memory: Memory, now: View) -> None:
        """beta"""
        memory.total = self.beta

    def learn(self, memory: Memory, now: View) -> None:
        """total_i += ||g_i^{n-1}||^2"""
        if now.labels is None:
            kernels.add_squares(memory.total.reshape(-1), now.g_prev.reshape(-1))
        else:
            kernels.add_block_squares(now.columns(memory.total)[0], now.labels, now.columns(now.g_prev)[0])

    def move(self, memory: Memory, now: View) -> None:
        """step = eta / total**power;  point = x - step * g"""
        if self.power == 0.5:
            super().move(memory, now)
            return
        total, *points = now.columns(memory.total, now.x, now.g, now.step, now.point)
        kernels.power_forward(total, now.rows, self.power, now.eta.astype(np.float64), *points)
