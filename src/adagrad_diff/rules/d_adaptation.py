"""D-Adaptation: dual averaging with a lower bound on the distance to a solution in place of the step size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ._parameters import positive
from .base import Rule
from .memory import NUMBER, POINT, Memory, View


@dataclass(frozen=True, eq=False)
class DAdaptation(Rule):
    r"""AdaGrad by dual averaging, whose step size is a lower bound on the distance to a solution. There is none to choose.

    .. math:: a_n^2 = a_{n-1}^2 + (g^n)^2, \quad s^n = s^{n-1} + d_n g^n, \qquad
              x^{n+1} = x^1 - \frac{s^n}{a_n + \varepsilon}, \qquad
              d_{n+1} = \max\Big(d_n, \frac{\sum_i (s_i^n)^2 / (a_{n,i} + \varepsilon)
              - \sum_{k \le n} d_k^2 \sum_i (g_i^k)^2 / (a_{k,i} + \varepsilon)}{\|s^n\|_1}\Big)

    with a_0^2 = `start`. The prox is our extension, that of `DualAveraging` with the weights d_k; the bound d_n is one for f
    alone. If d (`state.memory["d"]`) stays where it began, or never stops growing, this rule does not fit the problem.

    Parameters
    ----------
    eps : float
        Added to every weight, outside the root.
    d0 : float
        What d begins with: smaller than the distance to any solution.
    start : float
        What the sums of squares begin with.

    Examples
    --------
    >>> from adagrad_diff import DAdaptation, minimize
    >>> result = minimize(lambda x: (abs(x).sum(), (x > 0) * 2.0 - 1.0), [3.0, -4.0], rule=DAdaptation(), max_iter=2000)
    >>> bool(result.fun_best < 0.1)
    True

    References
    ----------
    Defazio, Mishchenko: Learning-rate-free learning by D-Adaptation, 2023. The constants are those of the authors' dadaptation.
    """

    memory: ClassVar[dict[str, str]] = {
        "total": POINT,
        "pull": POINT,
        "first": POINT,
        "d": NUMBER,
        "weight": NUMBER,  # the sum of the d_k
        "squares": NUMBER,  # that of d_k^2 ||g^k||^2 in the metric
    }

    eta: Any = field(default=None, init=False)
    eps: float = 1e-6
    blocks: Any = field(default=None, init=False)
    scale: Any = field(default=None, init=False)
    d0: float = 1e-6
    start: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "d0", "start")

    def begin(self, memory: Memory, now: View) -> None:
        """x^1, d_1 and a_0^2"""
        memory.first, memory.d, memory.total = now.x, self.d0, self.start

    def learn(self, memory: Memory, now: View) -> None:
        """a^2 += g^2;  s += d g;  d = max(d, its estimate)"""
        total, pull, g = now.columns(memory.total, memory.pull, now.g)
        sums = np.empty((3, now.eta.size))
        kernels.adapt_distance(total, self.eps, memory.d.reshape(-1), pull, g, sums)
        of_pull, of_gradient, size = (values.reshape(memory.d.shape) for values in sums)
        with np.errstate(all="ignore"):  # no gradient yet, or none that is finite
            memory.weight += memory.d
            memory.squares += memory.d**2 * of_gradient
            estimate = (of_pull - memory.squares) / size
        memory.d = np.where(estimate > memory.d, estimate, memory.d)

    def move(self, memory: Memory, now: View) -> None:
        """point = first - pull / (eps + sqrt(total));  step = weight / (eps + sqrt(total))"""
        total, first, pull, step, point = now.columns(memory.total, memory.first, memory.pull, now.step, now.point)
        weight = memory.weight.reshape(-1)
        kernels.dual_forward(total, now.rows, self.eps, np.ones(weight.size), weight, first, pull, step, point)
