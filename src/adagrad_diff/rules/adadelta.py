"""AdaDelta: moves as large as moves have lately been, in the units of x."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ._parameters import fraction
from .base import Rule
from .memory import BLOCK, Memory, View


@dataclass(frozen=True, eq=False)
class AdaDelta(Rule):
    r"""Averages of squared gradients, and of the squared moves that were made.

    .. math:: v_i^n = \rho v_i^{n-1} + (1 - \rho) \|g_i^n\|^2, \qquad
              u_i^n = \rho u_i^{n-1} + (1 - \rho) \|(x_i^n - x_i^{n-1}) / \eta\|^2, \qquad
              w_i^n = \frac{\sqrt{v_i^n + \varepsilon}}{\sqrt{u_i^n + \varepsilon}}, \quad \text{step}_i = \eta / w_i^n

    The prox is our extension: the reference has f alone, and no theory. Moves are those that were made, prox included. (While
    eta is a number that is what PyTorch does; if it is a function of n, all moves are measured by the newest.)

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`. Published: 1.
    rho : float
        How much of the averages stays, in [0, 1).
    eps : float
        Inside both roots: what moves begin with.
    blocks
        As for `AdaGradDiff`.

    Examples
    --------
    >>> from adagrad_diff import AdaDelta, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=AdaDelta(), max_iter=2000)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Zeiler: ADADELTA: an adaptive learning rate method, 2012. The constants are those of torch.optim.Adadelta.
    """

    memory: ClassVar[dict[str, str]] = {"total": BLOCK, "moved": BLOCK}
    published: ClassVar[float | None] = 1.0
    along_gradient: ClassVar[bool] = True

    eta: Any = 1.0
    eps: float = 1e-6
    rho: float = 0.9
    scale: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        fraction(self, "rho")

    def learn(self, memory: Memory, now: View) -> None:
        """total: the average of ||g_i^n||^2;  moved: that of ||x_i^n - x_i^{n-1}||^2"""
        total, moved, *points = now.columns(memory.total, memory.moved, now.g, now.x, now.x_prev)
        kernels.average_squares(total, now.rows, self.rho, points[0], None)
        kernels.average_squares(moved, now.rows, self.rho, *points[1:])

    def move(self, memory: Memory, now: View) -> None:
        """step = sqrt(moved + eta^2 eps) / sqrt(total + eps);  point = x - step * g"""
        total, moved, *points = now.columns(memory.total, memory.moved, now.x, now.g, now.step, now.point)
        kernels.delta_forward(total, moved, now.rows, self.eps, now.eta.astype(np.float64), *points)
