"""AdaDelta: moves as large as moves have lately been, in the units of x."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ._parameters import fraction
from .base import Arrays, Rule


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

    published: ClassVar[float | None] = 1.0

    eta: Any = 1.0
    eps: float = 1e-6
    rho: float = 0.9
    scale: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        fraction(self, "rho")

    def init(self, x: Any, g: Any) -> Arrays:
        zeros = self.block_sums(np.zeros_like(g))
        return {"last": x, "total": zeros, "moved": zeros}

    def update(self, memory: Arrays, n: Any, x: Any, g: Any) -> tuple[Arrays, Any, Any]:
        total = self.rho * memory["total"] + (1 - self.rho) * self.block_sums(g**2)
        moves = self.block_sums(
            (x - memory["last"]) ** 2
        )  # that is eta^2 times the moves of the formula
        moved = self.rho * memory["moved"] + (1 - self.rho) * moves
        step = np.sqrt((moved + self.step_size(n) ** 2 * self.eps) / (total + self.eps))
        step = self.spread(step)
        return {"last": x, "total": total, "moved": moved}, x - step * g, step
