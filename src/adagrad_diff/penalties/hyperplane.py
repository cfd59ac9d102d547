"""Hyperplanes and half-spaces: one step along the metric's normal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .arrays import EPS, by_row, by_rows, check_length, indicator, point, quiet, tolerance
from .base import Penalty, known_at_zero

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

RESIDUAL = 4 * EPS  # a residual of an equation as small as this, relative to its terms, is rounding
REFINEMENT_STEPS = 16  # steps of iterative refinement, at most


def normal(a: Any, owner: str) -> np.ndarray:
    """Return the coefficients of a linear equation: a finite vector that is not zero."""
    array = _check.real_array(a, f"The 'a' parameter of {owner}").astype(np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"The 'a' parameter of {owner} must be one-dimensional. Got shape {array.shape} instead."
        )
    _check.finite(array, f"The 'a' parameter of {owner}")
    if not array.any():
        raise ValueError(
            f"The 'a' parameter of {owner} is zero: the equation a'x = beta then says nothing about x."
        )
    return array


def scaled_equation(a: np.ndarray, beta: float, owner: str) -> tuple[np.ndarray, float]:
    """Return the same equation with coefficients of at most 1."""
    largest = np.abs(a).max()
    with np.errstate(over="ignore"):
        right = float(beta / largest)
    if not np.isfinite(right):
        raise ValueError(
            f"The 'beta' parameter of {owner}, {beta}, is too large for its 'a', which is at most {largest}: no x is so large."
        )
    return a / largest, right


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
    _below = False  # whether a'x may be less than beta

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
        eps = 8 * float(np.finfo(z.dtype).eps)

        def residual(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            terms = x * self._a
            return terms.sum(axis=1) - self._beta, np.abs(terms).sum(axis=1) + abs(self._beta)

        def project(z: np.ndarray, step: np.ndarray) -> np.ndarray:
            normal = step * self._a
            normal /= (normal * self._a).sum(axis=1)[:, None]
            excess, size = residual(z)
            moving = np.abs(excess) > eps * size
            if self._below:
                moving &= excess > 0.0
            # Once is the formula. Its rounding errors are relative to z, which may be large.
            for _ in range(REFINEMENT_STEPS):
                if not moving.any():
                    break
                z = z - np.where(moving, excess, 0.0)[:, None] * normal
                excess, size = residual(z)
                moving &= np.abs(excess) > RESIDUAL * size
            return z

        by_rows(project, z, step, out)

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
        check_length(size, self.a.size, type(self).__name__, "coefficients")


class HalfSpace(Hyperplane):
    r"""The indicator of a half-space.

    .. math:: \varphi(x) = 0 \text{ if } \langle a, x\rangle \le \beta, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = z_i - s_i a_i \frac{\max(\langle a, z\rangle - \beta, 0)}{\sum_j s_j a_j^2}

    Parameters
    ----------
    a : array
        The outer normal vector, not zero.
    beta : float
        The right-hand side.

    Examples
    --------
    >>> from adagrad_diff.penalties import HalfSpace
    >>> HalfSpace([1.0, 1.0], 2.0).prox([4.0, 1.0], step=[2.0, 1.0]).tolist()
    [2.0, 0.0]
    >>> HalfSpace([1.0, 1.0], 2.0).prox([0.0, 1.0], step=[2.0, 1.0]).tolist()
    [0.0, 1.0]
    """

    _below = True
