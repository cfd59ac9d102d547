"""The prox in any diagonal metric, by iteration, of a penalty that has it in a scalar one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .arrays import by_rows
from .base import Penalty, conjugate_inside, inner_prox
from .foreign import as_penalty
from .transformed import _Wrapped

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class NumericalProx(_Wrapped):
    r"""A penalty that needs one step for all coordinates, made to accept any.

    .. math:: \text{prox}(z, s) \text{ solves } 0 \in \partial\varphi(x) + (x - z) / s \text{ by accelerated proximal gradient
              steps } x \gets \text{prox}_\varphi(y - t (y - z) / s,\; t), \quad t = \min_i s_i

    The result is the exact prox of a point that differs from z by at most accuracy * max(\|z\|, \|x\|), in the maximum norm.
    The number of steps grows like the square root of max(s) / min(s), and a RuntimeError says when `max_iter` are too few.

    Parameters
    ----------
    penalty : Penalty
        The penalty; its prox is called with one step for all coordinates.
    accuracy : float
        Relative accuracy of the result.
    max_iter : int
        Steps to make at most, for one trajectory.

    Examples
    --------
    >>> from adagrad_diff.penalties import PSD, NumericalProx
    >>> NumericalProx(PSD(2)).prox([0.0, 1.0, 1.0, 0.0], step=[1.0, 1.0, 1.0, 4.0]).round(4).tolist()
    [0.4714, 0.6667, 0.6667, 0.9428]
    """

    accepts = "diagonal"
    accuracy = 1e-8

    def __init__(self, penalty: Any, accuracy: float = 1e-8, max_iter: int = 10_000):
        self.penalty, self.accuracy = (
            as_penalty(penalty),
            _check.positive(accuracy, "accuracy", "NumericalProx"),
        )
        self.max_iter = _check.count(max_iter, "max_iter", "NumericalProx", 1)

    def value(self, x: ArrayLike) -> Any:
        return self.penalty.value(x)

    def conjugate(self, y: ArrayLike) -> Any:
        return self.penalty.conjugate(y)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return conjugate_inside(self.penalty, y, e)

    def norm_part(self) -> Penalty | None:
        return self.penalty.norm_part()

    def polar(self, y: ArrayLike) -> Any:
        return self.penalty.polar(y)

    def check_metric(self, labels: np.ndarray | None, isotropic: bool) -> None:
        """Any metric will do."""

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        def solve(z: np.ndarray, step: np.ndarray) -> np.ndarray:
            return np.stack([self._solve(*pair) for pair in zip(z, step, strict=True)])

        by_rows(solve, z, step, out)

    def _solve(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        t = step.min()
        rate = t / step
        x = inner_prox(self.penalty, z, np.array([t]))
        if (rate == 1.0).all() or (x == z).all():
            return x
        y, weight = x, 1.0
        for _ in range(self.max_iter):
            x_prev, x = x, inner_prox(self.penalty, y - rate * (y - z), np.array([t]))
            # (y - x) (1 - rate) / t is a subgradient of the objective at x, so x is the prox of z less step times that.
            error = np.abs((y - x) * (1.0 - rate) / rate).max()
            if error <= self.accuracy * max(np.abs(z).max(), np.abs(x).max()):
                return x
            if (y - x) @ (x - x_prev) > 0.0:  # the momentum points uphill: start again without it
                weight = 1.0
            weight, weight_prev = (1.0 + np.sqrt(1.0 + 4.0 * weight**2)) / 2.0, weight
            y = x + (weight_prev - 1.0) / weight * (x - x_prev)
        raise RuntimeError(
            f"NumericalProx has not reached the accuracy {self.accuracy:g} in {self.max_iter} steps: the steps of the metric "
            f"differ by a factor of {step.max() / step.min():.1g}. Use blocks that make it smaller, a larger 'accuracy' or a "
            "larger 'max_iter'."
        )
