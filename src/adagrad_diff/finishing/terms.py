"""Penalties that are a sum over coordinates of what a linear or quadratic program can hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from ..penalties import Box, ElasticNet, Separable, Zero


@dataclass
class Terms:
    """sum_i l1_i |x_i| + l2_i / 2 x_i^2, and lower_i <= x_i <= upper_i."""

    l1: np.ndarray
    l2: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def select(self, index: Any) -> Terms:
        """Those of some coordinates."""
        return Terms(self.l1[index], self.l2[index], self.lower[index], self.upper[index])

    def with_free(self) -> Terms:
        """And one more coordinate without any."""
        return Terms(*(np.append(a, v) for a, v in ((self.l1, 0.0), (self.l2, 0.0), (self.lower, -np.inf), (self.upper, np.inf))))


def terms_of(penalty: Any, size: int) -> Terms | None:
    """The penalty of so many coordinates in this form; None if it has none."""
    terms = Terms(np.zeros(size), np.zeros(size), np.full(size, -np.inf), np.full(size, np.inf))
    return terms if _put(penalty, terms, np.arange(size)) else None


@singledispatch
def _put(penalty: Any, terms: Terms, where: np.ndarray) -> bool:
    """Write the penalty of the coordinates `where` into the terms; False if that is not possible."""
    return False


@_put.register
def _(penalty: Zero, terms: Terms, where: np.ndarray) -> bool:
    return True


@_put.register
def _(penalty: ElasticNet, terms: Terms, where: np.ndarray) -> bool:
    terms.l1[where], terms.l2[where] = penalty.l1, penalty.l2
    return True


@_put.register
def _(penalty: Box, terms: Terms, where: np.ndarray) -> bool:
    terms.lower[where], terms.upper[where] = penalty.lower, penalty.upper
    return True


@_put.register
def _(penalty: Separable, terms: Terms, where: np.ndarray) -> bool:
    _, parts, _ = penalty.plan(where.size)
    return all(_put(part, terms, where[index]) for index, part in parts)
