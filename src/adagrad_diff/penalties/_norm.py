"""What norms have in common: a polar, and a conjugate that is the indicator of the polar's unit ball."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import RELATIVE, Penalty, as_float

RELATIVE_FLOAT32 = 1e-6


class Norm(Penalty):
    """A norm (with strength 0, a seminorm). Subclasses write `value`, `prox` and `polar`."""

    properties = frozenset({"norm"})

    def conjugate(self, y):
        return indicator(self.polar(y) <= 1.0 + tolerance(as_float(y)))


def tolerance(x: np.ndarray) -> float:
    """How far outside a set, relative to its size, a point of x's dtype still counts as inside."""
    return RELATIVE_FLOAT32 if x.dtype == np.float32 else RELATIVE


def indicator(inside: Any) -> Any:
    """0 where inside, else inf: a number, or one per trajectory."""
    return np.where(inside, 0.0, np.inf)[()]


def ratio(size: Any, strength: Any) -> Any:
    """size / strength, where a dual norm divided by the strength 0 is inf, unless it is 0 too."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size == 0.0, 0.0, np.divide(size, strength))[()]


def euclidean(x: np.ndarray) -> Any:
    """The Euclidean norm of x, or of each trajectory, added up in float64."""
    return np.sqrt(np.einsum("i...,i...->...", x, x, dtype=np.float64))


def absolute_sum(x: np.ndarray) -> Any:
    """The L1 norm of x, or of each trajectory, added up in float64."""
    return np.abs(x).sum(axis=0, dtype=np.float64)


def largest(x: np.ndarray) -> Any:
    """The maximum norm of x, or of each trajectory."""
    return np.abs(x).max(axis=0).astype(np.float64)
