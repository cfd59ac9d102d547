"""Adaptive proximal gradient: one step, from the curvature that was met last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .base import Arrays, Rule

SHORT = 1e-3  # length of the first step, in units of 1 + ||x||


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

    eta: Any = field(default=None, init=False)
    eps: float = field(default=0.0, init=False)
    blocks: Any = field(default="all", init=False)
    scale: Any = field(default=None, init=False)

    def init(self, x: Any, g: Any) -> Arrays:
        step = first_step(x, g)
        return {"x": x, "g": g, "step": step, "before": step}

    def update(self, memory: Arrays, n: Any, x: Any, g: Any) -> tuple[Arrays, Any, Any]:
        gamma, before = memory["step"], memory["before"]
        dx, dg = x - memory["x"], g - memory["g"]
        moved, changed = np.sum(dx**2, axis=0), np.sum(dg**2, axis=0)
        excess = (
            gamma**2 * changed - gamma * np.sum(dx * dg, axis=0)
        ) / moved  # gamma l (gamma c - 1)
        longest = gamma * np.sqrt(1.0 + gamma / before)
        shorter = np.minimum(longest, gamma / (2.0 * np.sqrt(excess)))
        step = np.where(excess > 0, shorter, longest)
        known = (moved > 0) & (step > 0) & (step < np.inf)  # else x has not moved: keep the step
        step, before = np.where(known, step, gamma), np.where(known, gamma, before)
        second = second_step(gamma, moved, changed)
        step, before = np.where(n == 2, second, step), np.where(n == 2, second, before)
        return {"x": x, "g": g, "step": step, "before": before}, x - step * g, step


def first_step(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return the step of length SHORT * (1 + ||x||), or 1 where there is none."""
    with np.errstate(all="ignore"):
        size, slope = (np.sqrt(np.sum(values**2, axis=0)) for values in (x, g))
        step = SHORT * (1.0 + size) / slope
    return np.where((step > 0) & (step < np.inf), step, 1.0)


def second_step(step: np.ndarray, moved: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """Return ||dx|| / ||dg|| of the first step, or that step again where the quotient is none.

    It is bounded by the step of length 1 + ||x||: where a loss is almost linear, gradients hardly
    change, and without a bound the second step would be far too long.
    """
    with np.errstate(all="ignore"):
        found = np.minimum(np.sqrt(moved / changed), step / SHORT)
    return np.where((found > 0) & (found < np.inf), found, step)
