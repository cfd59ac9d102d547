"""KATE: AdaGrad without the root, and with a numerator that makes up for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ..common import check
from .base import Rule
from .memory import BLOCK, Memory, View


@dataclass(frozen=True, eq=False)
class KATE(Rule):
    r"""A version of AdaGrad that, for linear models and delta = 0, does not depend on the scales of the columns.

    .. math:: b_n^2 = b_{n-1}^2 + g_n^2, \quad m_n^2 = m_{n-1}^2 + \delta g_n^2 + \frac{g_n^2}{b_n^2 + \varepsilon}, \qquad
              w^n = \frac{b_n^2 + \varepsilon}{m_n}, \quad \text{step} = \eta / w^n

    The prox is our extension: the reference has f alone. A coordinate whose gradient was never anything but zero has weight 1:
    the formula has infinity, and what the prox does there would never be done.

    Parameters
    ----------
    eta : float, array or callable
        The step size, as for `AdaGradDiff`: the reference's beta. Published: 0.001.
    delta : float
        The reference's eta, 0.9; at least 0.
    eps, blocks
        As for `AdaGradDiff`, but eps is added to squares.

    Examples
    --------
    >>> from adagrad_diff import KATE, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=KATE(eta=1.0), max_iter=200)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Choudhury, Tupitsa, Loizou, Horvath, Takac, Gorbunov: Remove that square root: a new efficient scale-invariant version of
    AdaGrad, 2024, and the authors' code.
    """

    memory: ClassVar[dict[str, str]] = {"total": BLOCK, "ratios": BLOCK}
    published: ClassVar[float | None] = 1e-3
    along_gradient: ClassVar[bool] = True

    eta: Any = 1e-3
    delta: float = 0.9
    scale: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", check.nonnegative(self.delta, "delta", type(self).__name__))

    def learn(self, memory: Memory, now: View) -> None:
        """total, b^2, += g^2;  ratios, m^2, += delta g^2 + g^2 / (total + eps)"""
        total, ratios, g = now.columns(memory.total, memory.ratios, now.g)
        kernels.add_quotients(total, ratios, now.rows, self.eps, self.delta, g)

    def move(self, memory: Memory, now: View) -> None:
        """step = eta sqrt(ratios) / (total + eps);  point = x - step * g"""
        total, ratios, *points = now.columns(memory.total, memory.ratios, now.x, now.g, now.step, now.point)
        kernels.ratio_forward(total, ratios, now.rows, self.eps, now.eta.astype(np.float64), *points)
