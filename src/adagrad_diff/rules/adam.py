"""Adam: along a mean of gradients, in the metric of a mean of their squares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ._parameters import fraction
from .base import Arrays, Rule


@dataclass(frozen=True, eq=False)
class Adam(Rule):
    r"""Averages of gradients and of their squares, corrected for their start at zero.

    .. math:: m^n = \beta_1 m^{n-1} + (1 - \beta_1) g^n, \quad v_i^n = \beta_2 v_i^{n-1} + (1 - \beta_2) \|g_i^n\|^2, \qquad
              w_i^n = \varepsilon + \sqrt{\hat v_i^n}, \quad x^{n+1} = \text{prox}^{W_n}_{\eta\varphi}(x^n - \eta W_n^{-1} \hat
              m^n)

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`. The prox is our extension: the
    reference has f alone, and its proof has a gap that steps which decrease do not close.

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`. Published: 0.001.
    eps, blocks
        As for `AdaGradDiff`.
    beta1, beta2 : float
        How much of the averages stays, in [0, 1).

    Examples
    --------
    >>> from adagrad_diff import Adam, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=Adam(eta=0.1), max_iter=500)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Kingma, Ba: Adam: a method for stochastic optimization, 2015. Reddi, Kale, Kumar: On the convergence of Adam and beyond,
    2018.
    """

    published: ClassVar[float | None] = 1e-3

    eta: Any = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    scale: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        fraction(self, "beta1", "beta2")

    def init(self, x: Any, g: Any) -> Arrays:
        zeros = np.zeros_like(g)
        return {"mean": zeros, "total": self.block_sums(zeros)}

    def update(self, memory: Arrays, n: Any, x: Any, g: Any) -> tuple[Arrays, Any, Any]:
        mean = self.beta1 * memory["mean"] + (1 - self.beta1) * g
        total = self.beta2 * memory["total"] + (1 - self.beta2) * self.block_sums(g**2)
        root = np.sqrt(total / (1 - self.beta2**n))
        step = self.step_size(n) / (self.eps + self.spread(root))
        return {"mean": mean, "total": total}, x - step * mean / (1 - self.beta1**n), step
