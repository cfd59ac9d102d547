"""Adaptive proximal gradient: one step for all coordinates, from the local curvature."""

from typing import Any

import numpy as np

from .base import OneStepRule, fixed, frozen, squared_norm

SHORT = 1e-3  # length of the first step, in units of 1 + ||x||


@frozen
class AdaPG(OneStepRule):
    r"""Proximal gradient steps that fit the local curvature, for smooth f, without a step size.

    .. math:: \gamma_{n+1} = \min\Big(\gamma_n \sqrt{1 + \gamma_n / \gamma_{n-1}},
              \frac{\gamma_n}{2 \sqrt{\max(\gamma_n \ell_n (\gamma_n c_n - 1), 0)}}\Big), \qquad
              \ell_n = \frac{\langle \Delta g, \Delta x \rangle}{\|\Delta x\|^2}, \quad
              c_n = \frac{\|\Delta g\|^2}{\langle \Delta g, \Delta x \rangle}

    The reference proves convergence with the proximal step, for convex f whose gradient is locally
    Lipschitz. The first step is short: it has length :math:`(1 + \|x^1\|) / 1000` before the prox.
    The second one is :math:`\|\Delta x\| / \|\Delta g\|`, but at most a thousand times the first.
    From then on the formula holds.

    Examples
    --------
    >>> from adagrad_diff import AdaPG, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=AdaPG(), max_iter=30)
    >>> bool(result.fun < 1e-9)
    True

    References
    ----------
    Latafat, Themelis, Stella, Patrinos: Adaptive proximal algorithms for
    convex optimization under local Lipschitz continuity of the gradient, 2024. There the first step
    comes from a trial; here it does not.
    """

    eta: Any = fixed(None)

    def init(self, x, g):
        step = first_step(x, g)
        return {"x": x, "g": g, "step": step, "before": step}

    def update(self, memory, n, x, g):
        gamma, before = memory["step"], memory["before"]
        dx, dg = x - memory["x"], g - memory["g"]
        moved, changed = squared_norm(dx), squared_norm(dg)
        # gamma l (gamma c - 1)
        excess = (gamma**2 * changed - gamma * np.sum(dx * dg, axis=0)) / moved
        longest = gamma * np.sqrt(1.0 + gamma / before)
        step = np.fmin(longest, gamma / (2.0 * np.sqrt(excess)))  # ignores the root if excess < 0
        known = (moved > 0) & (step > 0) & (step < np.inf)  # else x has not moved: keep the step
        second = second_step(gamma, moved, changed)
        step = np.where(n == 2, second, np.where(known, step, gamma))
        before = np.where(n == 2, second, np.where(known, gamma, before))
        return {"x": x, "g": g, "step": step, "before": before}, x - step * g, step


def first_step(x: Any, g: Any) -> Any:
    """Return the step of length SHORT * (1 + ||x||), or 1 where the gradient gives none."""
    with np.errstate(all="ignore"):
        step = SHORT * (1.0 + np.sqrt(squared_norm(x))) / np.sqrt(squared_norm(g))
    return _positive_or(1.0, step)


def second_step(step: Any, moved: Any, changed: Any) -> Any:
    """Return ||dx|| / ||dg|| of the first step, or that step where the quotient is not positive.

    It is bounded by the step of length 1 + ||x||: where a loss is almost linear, gradients hardly
    change, and without a bound the second step would be far too long.
    """
    return _positive_or(step, np.minimum(np.sqrt(moved / changed), step / SHORT))


def _positive_or(fallback, values):
    """Return the values that are positive and finite, and the fallback for the others."""
    return np.where((values > 0) & (values < np.inf), values, fallback)
