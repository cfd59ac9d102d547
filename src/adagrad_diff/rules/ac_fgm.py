"""AC-FGM: an accelerated method with steps from the local curvature. There is no step size."""

from typing import Any

import numpy as np

from .ada_pg import first_step, second_step
from .base import AveragingRule, fixed, frozen, squared_norm

BETA = 1.0 - np.sqrt(6.0) / 3.0  # the reference's beta and alpha
ALPHA = 0.1
GROWTH = 4.0 / 3.0  # 2 (1 - BETA)^2, by which a step may grow
FIRST_SHARE = 0.4  # of one over the local curvature: the first accelerated step


@frozen
class ACFGM(AveragingRule):
    r"""The auto-conditioned fast gradient method. For smooth f; no step size, no line search.

    .. math:: z_t = \text{prox}_{\eta_t\varphi}(y_{t-1} - \eta_t \nabla f(x_{t-1})), \quad
              y_t = (1 - \beta) y_{t-1} + \beta z_t, \quad
              x_t = \frac{z_t + \tau_t x_{t-1}}{1 + \tau_t}

    .. math:: \eta_t = \min\Big( \tfrac43 \eta_{t-1}, \frac{\tau_{t-2} + 1}{\tau_{t-1}} \eta_{t-1},
              \frac{\tau_{t-1}}{4 L_{t-1}} \Big), \qquad
              \tau_t = \tau_{t-1} + \frac\alpha2 + \frac{2 (1 - \alpha) \eta_t L_{t-1}}{\tau_{t-1}}

    .. math:: L_t = \frac{\|\nabla f(x_t) - \nabla f(x_{t-1})\|^2}
              {2 (f(x_{t-1}) - f(x_t) - \langle \nabla f(x_t), x_{t-1} - x_t \rangle)}

    with :math:`\beta = 1 - \sqrt6/3`, alpha = 0.1, :math:`\tau_1 = 0`, :math:`\tau_2 = 1`,
    :math:`y_1 = y_0` and :math:`\eta_2 = \min((1 - \beta) \eta_1, 1 / 4 L_1)`. The reference proves
    the rate :math:`1/t^2` for convex f with the proximal step. An iteration is one gradient. The
    first iteration is a short step, as in `AdaPG`, and :math:`\eta_1` is 0.4 times its
    :math:`\|\Delta x\| / \|\Delta g\|`; the reference has a short line search instead.

    Examples
    --------
    >>> from adagrad_diff import ACFGM, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=ACFGM(), max_iter=60)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Li, Lan: A simple uniformly optimal method without line search for convex optimization, 2023,
    arXiv 2310.10082, and the authors' code. The first step is ours.
    """

    eta: Any = fixed(None)
    eps: float = fixed(1e-8)
    blocks: Any = fixed("all")

    def init(self, x, g):
        step, zeros = first_step(x, g), np.zeros(g.shape[1:])
        known = {"x": x, "g": g, "loss": zeros, "before": zeros, "step": step}
        return known | {"y": x, "tau": zeros, "last_tau": zeros}

    def update(self, memory, n, x, g):
        loss, step, tau = memory["loss"], memory["step"], memory["tau"]
        dx, dg = memory["x"] - x, memory["g"] - g
        changed, bound = squared_norm(dg), memory["before"] - loss - np.sum(g * dx, axis=0)
        L = np.where((changed > 0) & (bound > 0), changed / (2.0 * bound), 0.0)
        longest = np.minimum(GROWTH, (memory["last_tau"] + 1.0) / tau) * step
        known = np.where(L > 0, np.minimum(longest, tau / (4.0 * L)), step)
        second = np.fmin((1.0 - BETA) * step, 1.0 / (4.0 * L))
        begun = FIRST_SHARE * second_step(step, squared_norm(dx), changed)
        new = np.select([n == 1, n == 2, n == 3], [step, begun, second], known)
        grown = tau + ALPHA / 2.0 + 2.0 * (1.0 - ALPHA) * new * L / tau
        next_tau = np.select([n <= 2, n == 3], [0.0, 1.0], grown)
        y = np.where(n <= 2, x, memory["y"])
        noted = {"x": x, "g": g, "before": loss, "step": new, "y": y}
        return memory | noted | {"tau": next_tau, "last_tau": tau}, y - new * g, new

    def mix(self, memory, n, x, z):
        y = memory["y"] + np.where(n <= 2, 0.0, BETA) * (z - memory["y"])
        return memory | {"y": y}, x + (z - x) / (1.0 + memory["tau"])
