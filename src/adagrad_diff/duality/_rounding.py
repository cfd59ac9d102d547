"""Sums and their rounding errors."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, nan
from typing import Any

import numpy as np

from ..penalties.arrays import EPS
from ..penalties.arrays import sum_rounding as factor

__all__ = ["EPS", "exact_sum", "factor", "largest", "penalty_value"]


def exact_sum(values: Iterable[float]) -> float:
    """Return the rounded sum; NaN if it is not finite."""
    try:
        return fsum(values)
    except (OverflowError, ValueError):
        return nan


def largest(values: Any) -> float:
    """Return the largest absolute value."""
    return max(float(np.max(values)), -float(np.min(values)))


def penalty_value(dual: Any, x: np.ndarray) -> float:
    """Return phi(x). For data in single precision, x cannot be closer to a set than that."""
    phi = float(dual.penalty.value(x))
    return float(dual.penalty.value(x.astype(np.float32))) if phi == np.inf and dual.single else phi
