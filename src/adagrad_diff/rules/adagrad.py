"""AdaGrad in the same composite form: the paper's baseline."""

from __future__ import annotations

from dataclasses import dataclass

from .. import kernels
from .base import Rule
from .memory import Memory, View


@dataclass(frozen=True, eq=False)
class AdaGrad(Rule):
    r"""Accumulate squared gradients.

    .. math:: w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k\|^2}, \qquad \text{step}_i = \eta\, \text{scale}_i / w_i^n

    Parameters are those of `AdaGradDiff`. The prox is proved (in the reference, for regret).

    Examples
    --------
    >>> from adagrad_diff import AdaGrad, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=AdaGrad(eta=1.0), max_iter=200)
    >>> bool(result.fun < 1e-6)
    True

    References
    ----------
    Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and stochastic optimization, 2011.
    """

    def learn(self, memory: Memory, now: View) -> None:
        """total_i += ||g_i^n||^2"""
        if now.labels is None:
            kernels.add_squares(memory.total.reshape(-1), now.g.reshape(-1))
        else:
            total = memory.total.reshape(len(memory.total), -1)
            kernels.add_block_squares(total, now.labels, now.g.reshape(now.labels.size, -1))
