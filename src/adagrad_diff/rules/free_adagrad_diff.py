"""AdaGrad-Diff without a step size: the distance from the start takes its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ._parameters import positive
from .adagrad_diff import AdaGradDiff
from .dog import polynomial
from .memory import BLOCK, NUMBER, POINT, Memory, View


@dataclass(frozen=True, eq=False)
class FreeAdaGradDiff(AdaGradDiff):
    r"""Dual averaging in the metric of gradient differences, each gradient weighted by the distance from the start.

    .. math:: w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k - g_i^{k-1}\|^2}, \qquad
              \bar r_n = \frac{1}{\sqrt d} \max\Big(\rho (1 + \|x^1\|), \max_{k \le n} \|x^k - x^1\|\Big), \qquad
              x^{n+1} = \text{argmin}_x\ \Big\langle \sum_{k=1}^n \bar r_k g^k, x \Big\rangle + \sum_{k=1}^n \bar r_k \varphi(x)
              + \tfrac12 \langle x - x^1, W_n (x - x^1) \rangle

    d is the number of blocks. The distance is that of DoG, divided by the root of d as in AdaGrad++, and the move is that of
    DADA. There is no theory for it, with a prox or without. `result.x_avg` is an average as that of `DoG`; for smooth f the
    last iterate is about as good.

    On the paper's problems, on which it was chosen (four starts, one on news20; 1000 iterations; 2moons 400, news20 300),
    the average comes within 1% of the objective that AdaGradDiff reaches with the best of nine eta on hinge, LAD and
    splice, 3% on 2moons, and below it on news20 (AdaGrad was not in that comparison); `first` does not matter. In gaps,
    docs/rules.md shows it far behind rules whose step size is tuned. What was tried beside it: the same distance in
    AdaGradDiff's own move is better on news20, and 12% worse on splice (last iterate); a distance per coordinate is worse
    than that. What does not work: the distance not divided by the root of d, and the largest coordinate of x - x^1 as the
    distance (both diverge, or all but do, on some problems); one weight for all coordinates on news20.

    Parameters
    ----------
    eps, blocks
        As for `AdaGradDiff`.
    first : float
        rho, by which the first move is small.
    gamma : float
        The power of the average's weights, as for `DoG`.

    Examples
    --------
    >>> from adagrad_diff import FreeAdaGradDiff, minimize
    >>> result = minimize(lambda x: (abs(x).sum(), (x > 0) * 2.0 - 1.0), [3.0, -4.0], rule=FreeAdaGradDiff(), max_iter=2000)
    >>> bool(abs(result.x_avg).sum() < 0.05)
    True

    References
    ----------
    `AdaGradDiff` and `DoG`. Moshtaghifar, Rodomanov, Vankov, Stich: DADA: dual averaging with distance adaptation, 2025. Tao,
    Yuan, Gu: Towards simple and provable parameter-free adaptive gradient methods, 2024 (AdaGrad++).
    """

    memory: ClassVar[dict[str, str]] = {
        "total": BLOCK,
        "first": POINT,
        "pull": POINT,  # the sum of the gradients with their weights
        "average": POINT,
        "far": NUMBER,
        "weight": NUMBER,  # the sum of the weights
    }

    eta: Any = field(default=None, init=False)
    scale: Any = field(default=None, init=False)
    first: float = 1e-6
    gamma: float = 8.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "first", "gamma")

    def begin(self, memory: Memory, now: View) -> None:
        """x^1, and a first distance rho (1 + ||x^1||)"""
        memory.first = memory.average = now.x
        with np.errstate(over="ignore"):
            memory.far = self.first * (1.0 + np.sqrt(np.sum(memory.first**2, axis=0)))

    def learn(self, memory: Memory, now: View) -> None:
        """total_i += ||g_i^n - g_i^{n-1}||^2;  far = max(far, ||x^n - x^1||);  pull += far g^n / sqrt(d)"""
        super().learn(memory, now)
        first, average, pull, x, g = now.columns(memory.first, memory.average, memory.pull, now.x, now.g)
        kernels.keep_distances(memory.far.reshape(1, -1), np.zeros(len(x), np.int64), x, first)
        weight = memory.far / np.sqrt(len(memory.total))
        with np.errstate(over="ignore"):
            memory.weight += weight
        kernels.add_weighted(pull, weight.reshape(-1), g)
        kernels.average(average, polynomial(self.gamma, now), x)

    def move(self, memory: Memory, now: View) -> None:
        """point = first - pull / w;  step = weight / w"""
        total, first, pull, step, point = now.columns(memory.total, memory.first, memory.pull, now.step, now.point)
        weight = memory.weight.reshape(-1)
        kernels.dual_forward(total, now.rows, self.eps, np.ones(weight.size), weight, first, pull, step, point)
