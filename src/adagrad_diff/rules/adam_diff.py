"""Adam with differences: what the paper names as future work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._parameters import fraction, positive
from .base import Arrays, Rule
from .moves import MAX_MOVE


@dataclass(frozen=True, eq=False)
class AdamDiff(Rule):
    r"""Adam whose second moment is that of gradient differences, with bounded moves. The paper has no theory for it.

    .. math:: m^n = \beta_1 m^{n-1} + (1 - \beta_1) g^n, \quad
              v_i^n = \beta_2 v_i^{n-1} + (1 - \beta_2) \|g_i^n - g_i^{n-1}\|^2, \qquad
              w_i^n = \varepsilon + \max\Big(\sqrt{\hat v_i^n}, \frac{\|\hat m_i^n\|}{\text{max\_move}}\Big)

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`, g^0 = 0, and x moves along m as in
    `Adam`. The average forgets differences: while gradients stay the same, the step would grow without end. So no block moves
    farther than max_move * eta at once (before the prox).

    Parameters
    ----------
    eta, eps, blocks
        As for `AdaGradDiff`.
    beta1, beta2 : float
        How much of the averages stays, in [0, 1).
    max_move : float
        How far a block may move, in units of eta.

    Examples
    --------
    >>> from adagrad_diff import AdamDiff, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=AdamDiff(eta=0.1), max_iter=500)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Bojovic, Salzo, Pontil: AdaGrad-Diff: A New Version of the Adaptive Gradient Algorithm, the conclusion. The prox and the
    bound are ours.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    max_move: float = MAX_MOVE
    scale: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        fraction(self, "beta1", "beta2")
        positive(self, "max_move")

    def init(self, x: Any, g: Any) -> Arrays:
        zeros = np.zeros_like(g)  # g^0 = 0
        return {"previous": zeros, "mean": zeros, "total": self.block_sums(zeros)}

    def update(self, memory: Arrays, n: Any, x: Any, g: Any) -> tuple[Arrays, Any, Any]:
        mean = self.beta1 * memory["mean"] + (1 - self.beta1) * g
        squares = self.block_sums((g - memory["previous"]) ** 2)
        total = self.beta2 * memory["total"] + (1 - self.beta2) * squares
        root, direction = np.sqrt(total / (1 - self.beta2**n)), mean / (1 - self.beta1**n)
        least = np.sqrt(self.block_sums(direction**2)) / self.max_move
        step = self.step_size(n) / (self.eps + self.spread(np.maximum(root, least)))
        return {"previous": g, "mean": mean, "total": total}, x - step * direction, step
