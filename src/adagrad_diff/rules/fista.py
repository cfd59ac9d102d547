"""FISTA with backtracking and restart. There is no step size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from .ada_pg import first_step, products, second_step
from .base import Rule
from .memory import NUMBER, POINT, Memory, View

STEP, LOOK, FIRST = 0.0, 1.0, 2.0  # what an iteration is for
ROUNDING = 4096  # units in the last place of f by which the test of a step may be missed


@dataclass(frozen=True, eq=False)
class FISTA(Rule):
    r"""The accelerated proximal gradient method. For smooth f; there is no step size.

    .. math:: x^{k+1} = \text{prox}_{\gamma\varphi}(y^k - \gamma \nabla f(y^k)), \qquad t_{k+1} = \frac{1 + \sqrt{1 + 4
              t_k^2}}{2}, \qquad y^{k+1} = x^{k+1} + \frac{t_k - 1}{t_{k+1}} (x^{k+1} - x^k)

    The step is halved until :math:`f(x^{k+1}) \le f(y^k) + \langle \nabla f(y^k), x^{k+1} - y^k \rangle + \|x^{k+1} - y^k\|^2
    / 2\gamma`, and momentum is lost (t = 1, y = x) when it leads uphill: :math:`\langle y^k - x^{k+1}, x^{k+1} - x^k \rangle >
    0`. The prox is proved; the restart is a rule of thumb, and a good one.

    An iteration is one evaluation of f and its gradient. The first makes a short step, a thousandth of :math:`1 + \|x^1\|`, and the
    local :math:`\|\Delta x\| / \|\Delta g\|` is the step with which FISTA begins. Then each of its steps takes two iterations: one
    goes to x^{k+1}, the other looks at y^{k+1}, and x stands still meanwhile. A step that is too long takes one more; none is needed
    to look at y = x, at the beginning and after a restart.

    Examples
    --------
    >>> from adagrad_diff import FISTA, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=FISTA(), max_iter=30)
    >>> bool(result.fun < 1e-9)
    True

    References
    ----------
    Beck, Teboulle: A fast iterative shrinkage-thresholding algorithm for linear inverse problems, 2009. O'Donoghue, Candes:
    Adaptive restart for accelerated gradient schemes, 2015. The first step is ours.
    """

    memory: ClassVar[dict[str, str]] = {
        "y": POINT,
        "g": POINT,  # the gradient at y
        "f": NUMBER,
        "step": NUMBER,
        "t": NUMBER,
        "task": NUMBER,  # STEP, LOOK or FIRST
    }

    eta: Any = field(default=None, init=False)
    eps: float = field(default=0.0, init=False)
    blocks: Any = field(default="all", init=False)
    scale: Any = field(default=None, init=False)

    def begin(self, memory: Memory, now: View) -> None:
        """y^1 = x^1, and a short step"""
        memory.y, memory.g, memory.f, memory.t = now.x, now.g, now.f, 1.0
        memory.step, memory.task = first_step(now), FIRST

    def learn(self, memory: Memory, now: View) -> None:
        """What is learned is learned in `accepts`."""

    def move(self, memory: Memory, now: View) -> None:
        """point = y - step * g, or y to look at it"""
        looks = memory.task == LOOK
        now.prox = ~looks
        kernels.look_or_step(memory.step.reshape(-1), looks.reshape(-1), *now.columns(memory.y, memory.g, now.step, now.point))

    def accepts(self, memory: Memory, now: View) -> Any:
        """Steps that the quadratic model bounds; what was seen at y is kept"""
        if (memory.task == FIRST).all():
            memory.step = second_step(memory.step, *products(now.x_next, now.x, now.g_next, now.g, now)[1:])
            memory.y, memory.g, memory.f, memory.task = now.x_next, now.g_next, now.f_next, STEP
            return True
        looks, sums = memory.task == LOOK, np.empty((3, now.eta.size))
        y, g, x, x_next, g_next = now.columns(memory.y, memory.g, now.x, now.x_next, now.g_next)
        kernels.model_products(y, g, x, x_next, sums)
        slope, square, uphill = (values.reshape(looks.shape) for values in sums)
        with np.errstate(all="ignore"):  # a step that is too long may lead to where f is infinite
            slack = ROUNDING * np.finfo(now.x.dtype).eps * np.abs(memory.f)
            good = ~looks & (now.f_next <= memory.f + slope + square / (2.0 * memory.step) + slack)
            t = np.where(uphill > 0, 1.0, (1.0 + np.sqrt(1.0 + 4.0 * memory.t**2)) / 2.0)
            momentum = np.where(uphill > 0, 0.0, (memory.t - 1.0) / t)
        seen = looks | (good & (momentum == 0))  # the gradient at the new y is known
        kernels.extrapolate(y, g, *(values.reshape(-1) for values in (good, seen, momentum)), x, x_next, g_next)
        memory.f, memory.t = np.where(seen, now.f_next, memory.f), np.where(good, t, memory.t)
        memory.step = np.where(good | looks, memory.step, memory.step / 2.0)
        memory.task = np.where(good & ~seen, LOOK, STEP)
        return good
