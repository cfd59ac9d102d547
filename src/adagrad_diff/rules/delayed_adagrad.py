"""AdaGrad whose step does not know the newest gradient."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._parameters import positive, within
from .base import Arrays, Rule


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

    def init(self, x: Any, g: Any) -> Arrays:
        return {"total": np.full_like(self.block_sums(g), self.beta)}

    def update(self, memory: Arrays, n: Any, x: Any, g: Any) -> tuple[Arrays, Any, Any]:
        step = self.step_size(n) / self.spread(memory["total"]) ** self.power
        total = memory["total"] + self.block_sums(g**2)  # for the next step
        return {"total": total}, x - step * g, step
