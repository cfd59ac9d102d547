"""Adam with differences: what the paper names as future work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .. import kernels
from ..common.moves import MAX_MOVE
from ._moments import learn_mean, move_along, unbiased
from ._parameters import fraction, positive
from .base import Rule
from .memory import BLOCK, POINT, Memory, View


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

    memory: ClassVar[dict[str, str]] = {"total": BLOCK, "mean": POINT}

    beta1: float = 0.9
    beta2: float = 0.999
    max_move: float = MAX_MOVE
    scale: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        fraction(self, "beta1", "beta2")
        positive(self, "max_move")

    def learn(self, memory: Memory, now: View) -> None:
        """mean = beta1 mean + (1 - beta1) g;  total_i = beta2 total_i + (1 - beta2) ||g_i - g_prev_i||^2"""
        learn_mean(memory.mean, self.beta1, now)
        total, g, g_prev = now.columns(memory.total, now.g, now.g_prev)
        kernels.average_squares(total, now.rows, self.beta2, g, g_prev)

    def move(self, memory: Memory, now: View) -> None:
        """step = eta / (eps + max(sqrt(v), |m| / max_move));  point = x - step * m, both corrected"""
        move_along(memory.mean, unbiased(self.beta1, now), memory, now, self.beta2, self.eps, self.max_move)
