"""AdaGrad by dual averaging: always from the start, along all gradients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from .adagrad import AdaGrad
from .memory import BLOCK, POINT, Memory, View


@dataclass(frozen=True, eq=False)
class DualAveraging(AdaGrad):
    r"""AdaGrad's metric, and a step from the first iterate along the sum of all gradients.

    .. math:: w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k\|^2}, \qquad
              x^{n+1} = \text{argmin}_x\ \eta \Big\langle \sum_{k=1}^n g^k, x \Big\rangle + \eta n \varphi(x)
              + \tfrac12 \langle x - x^1, W_n (x - x^1) \rangle

    That is the prox, with n times the step, at :math:`x^1 - \eta W_n^{-1} \sum_k g^k`. It gives more zeros than `AdaGrad`
    does. The prox is proved, for the average of the iterates, if eps is at least as large as every entry of the gradients.

    Parameters
    ----------
    eta, eps, blocks
        As for `AdaGradDiff`; eps is the reference's delta.

    Examples
    --------
    >>> from adagrad_diff import L1, DualAveraging, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], L1(0.1), DualAveraging(eta=5.0), max_iter=500)
    >>> bool(result.fun_best < 1e-2)
    True

    References
    ----------
    Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and stochastic optimization, 2011, equation (3).
    """

    memory: ClassVar[dict[str, str]] = {"total": BLOCK, "first": POINT, "pull": POINT}
    scale: Any = field(default=None, init=False)

    def begin(self, memory: Memory, now: View) -> None:
        """x^1"""
        memory.first = now.x

    def learn(self, memory: Memory, now: View) -> None:
        """total_i += ||g_i^n||^2;  pull += g^n"""
        super().learn(memory, now)
        np.add(memory.pull, now.g, out=memory.pull)

    def move(self, memory: Memory, now: View) -> None:
        """point = first - eta * pull / w;  step = n * eta / w"""
        total, first, pull, step, point = now.columns(memory.total, memory.first, memory.pull, now.step, now.point)
        eta = now.eta.astype(np.float64)
        with np.errstate(over="ignore"):
            weight = now.n * eta
        kernels.dual_forward(total, now.rows, self.eps, eta, weight, first, pull, step, point)
