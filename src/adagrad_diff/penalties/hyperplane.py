"""Hyperplanes: one step along the metric's normal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from ..linalg.kernels import compiled
from ._norm import indicator
from ._points import quiet
from ._rows import (
    RESIDUAL_ROUNDING,
    by_row,
    check_length,
    in_double,
    normal,
    scaled_equation,
    tolerance,
)
from ._sizes import at_moderate_size
from .base import Penalty, known_at_zero, point

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@compiled
def project(z: Any, step: Any, beta: Any, a: Any, below: Any, rounding: Any, x: Any) -> None:
    """Each row: x = z - step * a * (a @ z - beta) / (a @ (step * a)); x = z where a @ z is beta already, or below if allowed"""
    for k in range(z.shape[0]):
        zk, sk, xk = z[k], step[k], x[k]
        dot, size, norm = 0.0, 0.0, 0.0
        for i in range(a.size):
            term = a[i] * zk[i]
            dot += term
            size += abs(term)
            norm += a[i] * a[i] * sk[i]
            xk[i] = zk[i]
        excess = dot - beta
        if abs(excess) <= rounding * (size + abs(beta)) or (below and excess < 0.0):
            continue
        for trial in range(
            64
        ):  # once is the formula; its rounding errors, relative to z, may be large relative to x
            dot, size = 0.0, 0.0
            for i in range(a.size):
                xk[i] -= sk[i] * a[i] * (excess / norm)
                dot += a[i] * xk[i]
                size += abs(a[i] * xk[i])
            excess = dot - beta
            if excess == 0.0 or (
                trial > 1 and not abs(excess) > RESIDUAL_ROUNDING * (size + abs(beta))
            ):
                break


class Hyperplane(Penalty):
    r"""The indicator of a hyperplane.

    .. math:: \varphi(x) = 0 \text{ if } \langle a, x\rangle = \beta, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = z_i - s_i a_i \frac{\langle a, z\rangle - \beta}{\sum_j s_j a_j^2}

    Parameters
    ----------
    a : array
        The normal vector, not zero.
    beta : float
        The right-hand side.

    Examples
    --------
    >>> from adagrad_diff.penalties import Hyperplane
    >>> Hyperplane([1.0, 1.0], 2.0).prox([4.0, 1.0], step=[2.0, 1.0]).tolist()
    [2.0, 0.0]
    """

    properties = frozenset({"set"})
    _below = False

    def __init__(self, a: ArrayLike, beta: float):
        owner = type(self).__name__
        self.a, self.beta = normal(a, owner), _check.number(beta, "beta", owner)
        self._a, self._beta = scaled_equation(self.a, self.beta, owner)

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        excess = self._a @ x - self._beta
        # Through the origin there is no size that the equation gives: then 1, as for a box.
        part = tolerance(x.dtype)
        slack = (part * np.abs(self._a)) @ np.abs(x) + part * (abs(self._beta) or 1.0)
        excess = excess if self._below else np.abs(excess)
        return indicator((excess <= slack) & (excess < np.inf))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        others = self._a, self._below, 8 * float(np.finfo(z.dtype).eps)
        in_double(at_moderate_size(project, lengths=(self._beta,), others=others), z, step, out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """beta * t if y = t a (t >= 0 for a half-space), else inf."""
        y = point(self, y, "y")
        slack = tolerance(y.dtype)

        def support(y: Any) -> Any:
            t = self._a @ y / (self._a @ self._a)
            parallel = (np.abs(y - t * self._a) <= slack * np.abs(y).max()).all()
            return float(self._beta * t) if parallel and (t >= 0.0 or not self._below) else np.inf

        return by_row(support, y)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return known_at_zero(y, e)

    def check_size(self, size: int) -> None:
        check_length(size, self.a.size, type(self).__name__)
