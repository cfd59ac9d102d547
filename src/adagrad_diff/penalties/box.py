"""Boxes: the prox is clipping, whatever the metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from ..linalg.kernels import compiled, plain
from ._norm import indicator
from ._points import quiet
from .base import RELATIVE, Penalty, QuadraticTerms, point
from .six_penalties import is_empty

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def _clip(z: Any, lower: Any, upper: Any, out: Any) -> None:
    low, high = (_rows(bound, z).astype(z.dtype) for bound in (lower, upper))
    np.minimum(np.maximum(z, low), high, out=out)


def _rows(bound: Any, z: Any) -> Any:
    """Return one bound for all rows of z, or one for each."""
    return bound[:, None] if z.ndim == 2 else bound


@plain(small=_clip, elementwise=True)
def clip(z: Any, lower: Any, upper: Any, out: Any) -> None:
    """out = np.clip(z, lower, upper), bounds of size 1 or one per row"""
    for i in range(z.shape[0]):
        low, high = (
            z.dtype.type(lower[i if lower.size > 1 else 0]),
            z.dtype.type(upper[i if upper.size > 1 else 0]),
        )
        if z.ndim == 1:
            raised = (
                low if z[i] < low else z[i]
            )  # two plain choices, as a nested one is not vectorised
            out[i] = high if raised > high else raised
        else:
            for k in range(z.shape[1]):
                raised = low if z[i, k] < low else z[i, k]
                out[i, k] = high if raised > high else raised


@quiet
def _count_outside(x: Any, lower: Any, upper: Any, slack: Any, out: Any) -> None:
    low, high, free = (_rows(a, x).astype(x.dtype) for a in (lower, upper, slack))
    out[...] = np.count_nonzero(~((x >= low - free) & (x <= high + free)), axis=0)


@compiled(small=_count_outside)
def count_outside(x: Any, lower: Any, upper: Any, slack: Any, out: Any) -> None:
    """out = np.sum(~((x >= lower - slack) & (x <= upper + slack)), axis=0), bounds of size 1 or one per row"""
    out[:] = 0
    for i in range(x.shape[0]):
        free = slack[i if slack.size > 1 else 0]
        # in the dtype of x, so that what clipping in it returns is inside
        low = x.dtype.type(x.dtype.type(lower[i if lower.size > 1 else 0]) - free)
        high = x.dtype.type(x.dtype.type(upper[i if upper.size > 1 else 0]) + free)
        if x.ndim == 1:
            out[0] += not (x[i] >= low) & (x[i] <= high)
        else:
            for k in range(x.shape[1]):
                out[k] += not (x[i, k] >= low) & (x[i, k] <= high)


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
        size = np.maximum(
            *(
                np.where(np.isfinite(bound), np.abs(bound), 0.0)
                for bound in (self.lower, self.upper)
            )
        )
        self._slack = np.atleast_1d(RELATIVE * np.where(size > 0, size, 1.0))
        self._lower, self._upper = np.atleast_1d(self.lower), np.atleast_1d(self.upper)

    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        outside = np.empty(x[:1].size, np.int64)
        count_outside(x, self._lower, self._upper, self._slack, outside)
        return indicator(outside == 0) if x.ndim == 2 else (np.inf if outside[0] else 0.0)

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        clip(z, self._lower, self._upper, out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """sum of max(l_i y_i, u_i y_i), where an infinite bound allows y_i of its sign to be zero only."""
        y = point(self, y, "y").astype(np.float64, copy=False)
        lower, upper = (
            bound[:, None] if y.ndim == 2 else bound for bound in (self._lower, self._upper)
        )
        bound = np.where(y > 0, upper, lower)
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
            if bound.ndim and bound.size != size:
                raise ValueError(
                    f"Box has {bound.size} bounds, but there are {size} penalised coordinates."
                )


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
