"""Adaptive proximal gradient: one step, from the curvature that was met last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from .base import Rule
from .memory import NUMBER, Memory, View

SHORT = 1e-3  # how far, in units of 1 + ||x||, the first step goes


@dataclass(frozen=True, eq=False)
class AdaPG(Rule):
    r"""Proximal gradient steps that fit the local curvature, without a line search. For smooth f; there is no step size.

    .. math:: \gamma_{n+1} = \min\Big(\gamma_n \sqrt{1 + \gamma_n / \gamma_{n-1}},
              \frac{\gamma_n}{2 \sqrt{\max(\gamma_n \ell_n (\gamma_n c_n - 1), 0)}}\Big), \qquad
              \ell_n = \frac{\langle \Delta g, \Delta x \rangle}{\|\Delta x\|^2}, \quad
              c_n = \frac{\|\Delta g\|^2}{\langle \Delta g, \Delta x \rangle}

    The prox is proved, for convex f whose gradient is locally Lipschitz. The first step is short, a thousandth of
    :math:`1 + \|x^1\|` before the prox; the second one is :math:`\|\Delta x\| / \|\Delta g\|`, or a thousand times the first if
    that is less; and from then on the formula holds.

    Examples
    --------
    >>> from adagrad_diff import AdaPG, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=AdaPG(), max_iter=30)
    >>> bool(result.fun < 1e-9)
    True

    References
    ----------
    Latafat, Themelis, Stella, Patrinos: Adaptive proximal algorithms for convex optimization under local Lipschitz continuity
    of the gradient, 2024. The authors find the first step by a trial, too; this one is ours.
    """

    memory: ClassVar[dict[str, str]] = {"step": NUMBER, "before": NUMBER}
    along_gradient: ClassVar[bool] = True

    eta: Any = field(default=None, init=False)
    eps: float = field(default=0.0, init=False)
    blocks: Any = field(default="all", init=False)
    scale: Any = field(default=None, init=False)

    def begin(self, memory: Memory, now: View) -> None:
        """A short step"""
        memory.step = memory.before = first_step(now)

    def learn(self, memory: Memory, now: View) -> None:
        """gamma_{n+1}; where x has not moved it stays as it is"""
        inner, moved, changed = products(now.x, now.x_prev, now.g, now.g_prev, now)
        gamma, before = memory.step.copy(), memory.before
        with np.errstate(all="ignore"):  # x has not moved, or gradients have not changed
            excess = (gamma**2 * changed - gamma * inner) / moved  # gamma l (gamma c - 1)
            longest = gamma * np.sqrt(1.0 + gamma / before)
            new = np.where(excess > 0, np.minimum(longest, gamma / (2.0 * np.sqrt(excess))), longest)
        known = (moved > 0) & (new > 0) & (new < np.inf)
        second = np.equal(now.n, 2)
        found = np.where(second, second_step(gamma, moved, changed), np.where(known, new, gamma))
        memory.before = np.where(second, found, np.where(known, gamma, before))
        memory.step = found

    def move(self, memory: Memory, now: View) -> None:
        """step = gamma;  point = x - gamma * g"""
        kernels.scalar_forward(memory.step.reshape(-1), *now.columns(now.x, now.g, now.step, now.point))


def first_step(now: View) -> Any:
    """The step that goes SHORT * (1 + ||x||) far."""
    with np.errstate(all="ignore"):
        x, g = (np.sqrt(np.sum(np.square(array, dtype=np.float64), axis=0)) for array in (now.x, now.g))
        step = SHORT * (1.0 + x) / g
    return np.where((step > 0) & (step < np.inf), step, 1.0)


def second_step(step: Any, moved: Any, changed: Any) -> Any:
    """||dx|| / ||dg|| of the first step, or that one again where this is no step.

    It is no more than would have gone 1 + ||x|| far: where a loss is all but linear, gradients hardly change, and without a
    bound the step would leave for good.
    """
    with np.errstate(all="ignore"):
        found = np.minimum(np.sqrt(moved / changed), step / SHORT)
    return np.where((found > 0) & (found < np.inf), found, step)


def products(x: Any, y: Any, u: Any, v: Any, now: View) -> tuple[Any, ...]:
    """<a, b>, ||a||^2 and ||b||^2 of a = x - y and b = u - v, of every trajectory."""
    sums = np.empty((3, now.eta.size))
    kernels.inner_products(*now.columns(x, y, u, v), sums)
    return tuple(values.reshape(np.shape(now.f)) for values in sums)
