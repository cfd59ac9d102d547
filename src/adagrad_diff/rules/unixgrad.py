"""UniXGrad: an accelerated extragradient method with steps from differences of gradients."""

from typing import Any

import numpy as np

from .base import AveragingRule, fixed, frozen, squared_norm


@frozen
class UniXGrad(AveragingRule):
    r"""Extragradient steps with weights that grow, and gradients at averages.

    .. math:: x_t = P(y_{t-1} - \eta_t t M_t), \quad y_t = P(y_{t-1} - \eta_t t\, g_t), \quad
              M_t = \nabla f(z_t), \quad g_t = \nabla f(\bar x_t), \qquad
              \eta_t = \frac{\eta}{\sqrt{\varepsilon + \sum_{s<t} s^2 \|g_s - M_s\|^2}}

    where :math:`\bar x_t` is the average of :math:`x_1, \dots, x_t` with weights 1, ..., t, and
    :math:`z_t` the average of :math:`x_1, \dots, x_{t-1}, y_{t-1}` with the same weights. For
    convex f on a bounded set with projection P, the reference proves the rates :math:`1/t^2` if f
    is smooth and :math:`1/\sqrt t` otherwise, without knowing which. With other penalties the prox
    in the place of P is a heuristic.

    Each step takes two gradients, so it counts as two iterations: the first ends at
    :math:`\bar x_t`, the answer of the reference, the second at :math:`z_{t+1}`.

    Parameters
    ----------
    eta : float, array or callable
        The step size: twice the diameter of the set, in the reference.
    eps : float
        Inside the root.

    Examples
    --------
    >>> from adagrad_diff import UniXGrad, minimize
    >>> rule = UniXGrad(eta=5.0)
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=rule, max_iter=300)
    >>> bool(result.fun_best < 1e-6)
    True

    References
    ----------
    Kavis, Levy, Bach, Cevher: UniXGrad: a universal, adaptive algorithm with optimal guarantees for
    constrained optimization, 2019.
    """

    eps: float = 1.0
    blocks: Any = fixed("all")

    def init(self, x, g):
        zeros = np.zeros(g.shape[1:])
        return {"y": x, "average": x, "previous": np.zeros_like(g), "total": zeros}

    def update(self, memory, n, x, g):
        t = (n + 1) // 2  # n is odd when g = M_t, even when g = g_t and "previous" is M_t
        step = self.step_size(n) * t / np.sqrt(self.eps + memory["total"])
        added = np.where(n % 2 == 0, t**2 * squared_norm(g - memory["previous"]), 0.0)
        new = {"previous": g, "total": memory["total"] + added}
        return memory | new, memory["y"] - step * g, step

    def mix(self, memory, n, x, z):
        average, odd = memory["average"], n % 2 == 1
        new = average + 2.0 / ((n + 1) // 2 + np.where(odd, 1, 2)) * (z - average)
        y, average = np.where(odd, memory["y"], z), np.where(odd, new, average)
        return memory | {"y": y, "average": average}, new
