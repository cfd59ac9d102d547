"""What norms have in common: a polar, and a conjugate that is the indicator of the polar's unit ball."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._points import quiet
from ._sizes import all_moderate
from .base import RELATIVE, Penalty, point

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

RELATIVE_FLOAT32 = 1e-6


class Norm(Penalty):
    """A norm (with strength 0, a seminorm). Subclasses write `value`, `apply` and `polar`."""

    properties = frozenset({"norm"})

    def conjugate(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        return indicator(self.polar(y) <= 1.0 + tolerance(y))


def tolerance(x: np.ndarray) -> float:
    """How far outside a set, relative to its size, a point of x's dtype still counts as inside."""
    return RELATIVE_FLOAT32 if x.dtype == np.float32 else RELATIVE


def indicator(inside: Any) -> Any:
    """0 where inside, else inf: a number, or one per trajectory."""
    return np.where(inside, 0.0, np.inf)[()]


@quiet
def ratio(size: Any, strength: Any) -> Any:
    """size / strength, where a dual norm divided by the strength 0 is inf, unless it is 0 too."""
    return np.where(size == 0.0, 0.0, np.divide(size, strength))[()]


def euclidean(x: np.ndarray) -> Any:
    """The Euclidean norm of x, or of each trajectory, added up in float64."""
    if all_moderate(x):
        return np.sqrt(np.einsum("i...,i...->...", x, x, dtype=np.float64))
    unit = unit_of(np.abs(x).max(axis=0))
    return unit * np.sqrt(np.sum((x / unit) ** 2, axis=0))


def unit_of(size: np.ndarray) -> Any:
    """What to divide numbers of this size by, so that their squares neither overflow nor vanish."""
    return np.where((size > 0) & (size < np.inf), size, 1.0)


def absolute_sum(x: np.ndarray) -> Any:
    """The L1 norm of x, or of each trajectory, added up in float64."""
    return np.abs(x).sum(axis=0, dtype=np.float64)


def largest(x: np.ndarray) -> Any:
    """The maximum norm of x, or of each trajectory."""
    return np.abs(x).max(axis=0).astype(np.float64)
