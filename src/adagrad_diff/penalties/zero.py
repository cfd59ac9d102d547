"""phi = 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import indicator, point
from .base import Penalty, QuadraticTerms, known_at_zero

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Zero(Penalty):
    """The zero function: no penalty, prox(z) = z.

    Examples
    --------
    >>> from adagrad_diff.penalties import Zero
    >>> Zero().prox([1.0, -2.0], 0.5).tolist()
    [1.0, -2.0]
    """

    properties = frozenset({"separable", "seminorm"})

    def value(self, x: ArrayLike) -> Any:
        return np.zeros(point(self, x).shape[1:])[()]

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, z)

    def conjugate(self, y: ArrayLike) -> Any:
        return indicator(np.all(point(self, y, "y") == 0, axis=0))

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return known_at_zero(y, e)

    def quadratic_terms(self, size: int) -> QuadraticTerms:
        return QuadraticTerms.of(size)

    def polar(self, y: ArrayLike) -> Any:
        return self.conjugate(y)
