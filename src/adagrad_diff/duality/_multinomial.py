"""The dual function of the multinomial loss: u is one row per sample, and u + (1 at the sample's class) are probabilities p."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..losses import Multinomial
from ._dual import LinearDual


class MultinomialDual(LinearDual):
    """Rows of p sum to one, and with an intercept every class has its own share of samples; up to rounding."""

    loss: Multinomial
    typical = spread = 1.0
    independence = 0.0  # not known

    def _targets(self) -> np.ndarray:
        indicators = np.zeros((len(self.loss.b), self.loss.classes))
        indicators[np.arange(len(indicators)), self.loss.b] = 1.0
        return indicators

    def residuals(self, oracle: Any, column: int | None) -> Any:
        return oracle.residuals(column)

    def multipliers(self, r: np.ndarray) -> np.ndarray:
        p: np.ndarray = np.maximum(super().multipliers(r) + self.b, 0.0)
        p /= p.sum(axis=1, keepdims=True)
        return np.asarray(p - self.b)

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.repeat(super().sizes, self.loss.classes)

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        return float(np.log(self.loss.classes))

    def size(self, u: np.ndarray) -> float:
        return 1.0  # it is probabilities that are rounded

    def _losses(self, u: np.ndarray) -> tuple[float, float]:
        """sum_j w_j sum_c p log p"""
        from scipy.special import entr

        entropy = self.mean(entr(np.maximum(u + self.b, 0.0)).sum(axis=1))
        return -entropy, entropy + 2.0

    def balanced(self, u: np.ndarray) -> np.ndarray:
        """p mixed with one distribution for all samples, as little of it as gives every class its own share of samples."""
        p: np.ndarray = u + self.b
        has, wanted = self.weight @ p, self.weight @ self.b
        part = self._excess(has, wanted)
        other = np.maximum(wanted - (1.0 - part) * has, 0.0)
        if not other.any():  # balanced, as far as one can see
            return u.copy()
        return np.asarray((1.0 - part) * p + part * (other / other.sum()) - self.b)

    def _imbalance(self, u: np.ndarray) -> tuple[float, float, float]:
        excess = self._excess(self.weight @ (u + self.b), self.weight @ self.b)
        return min(excess + 4.0 * self.rounding, 1.0), 1.0, 0.0  # and entropies are not negative

    @staticmethod
    def _excess(has: np.ndarray, wanted: np.ndarray) -> float:
        """The part of p that has to be replaced."""
        return float(
            np.max(1.0 - np.divide(wanted, has, out=np.ones_like(has), where=has > 0), initial=0.0)
        )
