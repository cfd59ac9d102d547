"""The Huber function of each coordinate: small ones shrink as under a ridge, large ones are moved as under an L1 norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import nonnegative, positive
from .arrays import point, quiet, tolerance
from .base import Penalty

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class HuberPenalty(Penalty):
    r"""The Huber function, summed over the coordinates.

    .. math:: \varphi(x) = \lambda \sum_i h(x_i), \quad
              h(t) = \begin{cases} t^2 / 2 & |t| \le \delta \\ \delta |t| - \delta^2 / 2 & \text{else,} \end{cases} \qquad
              \text{prox}(z, s)_i = \begin{cases} z_i / (1 + \lambda s_i) & |z_i| \le \delta (1 + \lambda s_i) \\
              z_i - \lambda s_i \delta\, \text{sign}(z_i) & \text{else} \end{cases}

    Parameters
    ----------
    lam : float
        Strength >= 0.
    delta : float
        Where the parabola ends and the straight lines begin, > 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import HuberPenalty
    >>> HuberPenalty(1.0, delta=2.0).prox([3.0, -6.0], step=1.0).tolist()
    [1.5, -4.0]
    """

    properties = frozenset({"separable"})

    def __init__(self, lam: float, delta: float):
        self.lam = nonnegative(lam, "lam", "HuberPenalty")
        self.delta = positive(delta, "delta", "HuberPenalty")

    @quiet
    def value(self, x: ArrayLike) -> Any:
        size = np.abs(point(self, x)).astype(np.float64, copy=False)
        inner = np.minimum(size, self.delta)
        return np.sum(self.lam * inner * (size - 0.5 * inner), axis=0)

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        pull, size = self.lam * step, np.abs(z)
        shrunk = np.maximum(
            size / (1.0 + pull), size - pull * self.delta
        )  # the larger one is right
        out[...] = np.copysign(shrunk, z)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        size = np.abs(y).astype(np.float64, copy=False)
        outside = (size > self.lam * self.delta * (1.0 + tolerance(y.dtype))).any(axis=0)
        half = np.sum(size * (size / (2.0 * self.lam)), axis=0) if self.lam else 0.0
        return np.where(outside, np.inf, half)[()]

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        size = np.abs(y) + e
        if np.any(size > self.lam * self.delta):
            return np.inf, np.inf
        value = np.sum(size * (size / (2.0 * self.lam))) if self.lam else 0.0
        return value, value
