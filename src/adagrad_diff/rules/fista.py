"""FISTA with backtracking and restart. There is no step size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from .ada_pg import first_step, products, second_step
from .base import Rule
from .memory import NUMBER, POINT, Memory, View

TO_STEP, TO_LOOK, TO_BEGIN = 0.0, 1.0, 2.0  # what an iteration is for
MODEL_SLACK = 4096  # units in the last place of f by which the test of a step may be missed


@dataclass(frozen=True, eq=False)
class FISTA(Rule):
    r"""The accelerated proximal gradient method. For smooth f; there is no step size.

    .. math:: x^{k+1} = \text{prox}_{\gamma\varphi}(y^k - \gamma \nabla f(y^k)), \qquad
              t_{k+1} = \frac{1 + \sqrt{1 + 4 t_k^2}}{2}, \qquad y^{k+1} = x^{k+1} + \frac{t_k - 1}{t_{k+1}} (x^{k+1} - x^k)

    The step is halved until f(x^{k+1}) is not above the quadratic model
    :math:`f(y^k) + \langle \nabla f(y^k), x^{k+1} - y^k \rangle + \|x^{k+1} - y^k\|^2 / 2\gamma`. Momentum is lost (t = 1, y =
    x) when it leads uphill: :math:`\langle y^k - x^{k+1}, x^{k+1} - x^k \rangle > 0`. The prox is proved; the restart is a rule
    of thumb, and a good one.

    An iteration is one evaluation of f and its gradient. The first makes a short step, a thousandth of :math:`1 + \|x^1\|`,
    and the local :math:`\|\Delta x\| / \|\Delta g\|` (at most a thousand first steps) is where FISTA begins. Then each of
    its steps takes two iterations: one goes to x^{k+1}, the other looks at y^{k+1}, and x stands still meanwhile. A step
    that is too long takes one more; none is needed to look at y = x, at the beginning and after a restart.

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
        "task": NUMBER,  # TO_STEP, TO_LOOK or TO_BEGIN
    }

    eta: Any = field(default=None, init=False)
    eps: float = field(default=0.0, init=False)
    blocks: Any = field(default="all", init=False)
    scale: Any = field(default=None, init=False)

    def begin(self, memory: Memory, now: View) -> None:
        """y^1 = x^1, and a short step"""
        memory.y, memory.g, memory.f, memory.t = now.x, now.g, now.f, 1.0
        memory.step, memory.task = first_step(now), TO_BEGIN

    def learn(self, memory: Memory, now: View) -> None:
        """What is learned is learned in `accepts`."""

    def move(self, memory: Memory, now: View) -> None:
        """point = y - step * g, or y to look at it"""
        looks = memory.task == TO_LOOK
        now.prox = ~looks
        kernels.look_or_step(memory.step.reshape(-1), looks.reshape(-1), *now.columns(memory.y, memory.g, now.step, now.point))

    def accepts(self, memory: Memory, now: View) -> Any:
        """Steps that the quadratic model bounds; what was seen at y is kept"""
        if (memory.task == TO_BEGIN).all():
            memory.step = second_step(memory.step, *products(now.x_next, now.x, now.g_next, now.g, now)[1:])
            memory.y, memory.g, memory.f, memory.task = now.x_next, now.g_next, now.f_next, TO_STEP
            return True
        looks, sums = memory.task == TO_LOOK, np.empty((4, now.eta.size))
        y, g, x, g_x, x_next, g_next = now.columns(memory.y, memory.g, now.x, now.g, now.x_next, now.g_next)
        kernels.model_products(y, g, x, x_next, g_next, sums)
        slope, square, uphill, size = (values.reshape(looks.shape) for values in sums)
        with np.errstate(all="ignore"):  # a step that is too long may lead to where f is infinite
            slack = MODEL_SLACK * np.finfo(now.x.dtype).eps * np.abs(memory.f)
            bounded = now.f_next <= memory.f + slope + square / (2.0 * memory.step) + slack
            good = ~looks & (bounded | (square == 0))  # a shorter step than none would not help
            t = np.where(uphill > 0, 1.0, (1.0 + np.sqrt(1.0 + 4.0 * memory.t**2)) / 2.0)
            momentum = np.where(uphill > 0, 0.0, (memory.t - 1.0) / t)
            lost = looks & ~np.isfinite(now.f_next + size)  # y is where there is no gradient: begin anew at x
        seen = (looks & ~lost) | (good & (momentum == 0))  # the gradient at the new y is known
        which = (values.reshape(-1) for values in (good, seen, lost, momentum))
        kernels.extrapolate(y, g, *which, x, g_x, x_next, g_next)
        memory.f = np.where(seen, now.f_next, np.where(lost, now.f, memory.f))
        memory.t = np.where(good, t, np.where(lost, 1.0, memory.t))
        memory.step = np.where(good | looks, memory.step, memory.step / 2.0)
        memory.task = np.where(good & ~seen, TO_LOOK, TO_STEP)
        return good
