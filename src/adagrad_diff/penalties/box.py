"""Boxes: the prox is clipping, whatever the metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .arrays import RELATIVE, check_length, column, indicator, point, quiet
from .base import Penalty, QuadraticTerms
from .six_penalties import is_empty, prox

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Box(Penalty):
    r"""The indicator of a box.

    .. math:: \varphi(x) = 0 \text{ if } l \le x \le u, \text{ else } \infty, \qquad
              \text{prox}(z, s) = \min(\max(z, l), u)

    Parameters
    ----------
    lower, upper : float or array
        Bounds, one for all coordinates or one per coordinate; infinite, that is none, by default.

    Examples
    --------
    >>> from adagrad_diff.penalties import Box
    >>> Box(0.0, 1.0).prox([-1.0, 0.5, 3.0], step=10.0).tolist()
    [0.0, 0.5, 1.0]
    """

    properties = frozenset({"separable", "set"})

    def __init__(self, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf):
        sentence = "The bounds of Box must be numbers or one-dimensional arrays without NaN."
        self.lower, self.upper = _check.numbers(lower, sentence), _check.numbers(upper, sentence)
        for bound in (self.lower, self.upper):
            if bound.ndim > 1 or bound.size == 0 or np.isnan(bound).any():
                raise ValueError(sentence)
        try:
            empty = is_empty(self.lower, self.upper)
        except ValueError:
            raise ValueError(
                f"The bounds of Box must have the same length. Got {self.lower.size} and {self.upper.size}."
            ) from None
        if np.any(empty):
            raise ValueError(
                f"Box is empty: lower must not exceed upper. It does at coordinate {int(np.argmax(empty))}."
            )
        self._lower, self._upper = np.atleast_1d(self.lower), np.atleast_1d(self.upper)
        finite = (np.where(np.isfinite(b), np.abs(b), 0.0) for b in (self._lower, self._upper))
        size = np.maximum(*finite)
        self._slack = RELATIVE * np.where(size > 0, size, 1.0)

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        lower, upper, slack = (
            column(v, x).astype(x.dtype) for v in (self._lower, self._upper, self._slack)
        )
        return indicator(((x >= lower - slack) & (x <= upper + slack)).all(axis=0))

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        lower, upper = (column(bound, z).astype(z.dtype) for bound in (self._lower, self._upper))
        out[...] = prox(np, z, step, (0.0, 0.0, lower, upper))

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """sum of max(l_i y_i, u_i y_i), where an infinite bound allows y_i of its sign to be zero only."""
        y = point(self, y, "y").astype(np.float64, copy=False)
        bound = np.where(y > 0, column(self._upper, y), column(self._lower, y))
        zero = (y == 0) | (np.isinf(bound) & (np.abs(y) <= RELATIVE * np.abs(y).max(axis=0)))
        return np.sum(np.multiply(bound, y, out=np.zeros_like(y), where=~zero), axis=0)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        ends = []
        for v in (y + e, y - e):  # convex in each coordinate: the largest value is at an end
            bound = np.where(v > 0, self.upper, self.lower)
            ends.append(np.multiply(bound, v, out=np.zeros_like(v), where=v != 0))
        values = np.maximum(*ends)
        return values.sum(), np.abs(values).sum()

    def quadratic_terms(self, size: int) -> QuadraticTerms:
        return QuadraticTerms.of(size, lower=self.lower, upper=self.upper)

    def check_size(self, size: int) -> None:
        for bound in (self.lower, self.upper):
            if bound.ndim:
                check_length(size, bound.size, "Box", "bounds")


class NonNegative(Box):
    r"""The indicator of the nonnegative orthant: prox(z) = max(z, 0).

    Examples
    --------
    >>> from adagrad_diff.penalties import NonNegative
    >>> NonNegative().prox([-1.0, 0.5], step=1.0).tolist()
    [0.0, 0.5]
    """

    properties = frozenset({"separable", "set", "cone"})

    def __init__(self) -> None:
        super().__init__(0.0, np.inf)

    def __repr__(self) -> str:
        return "NonNegative()"
