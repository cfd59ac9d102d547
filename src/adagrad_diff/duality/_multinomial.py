"""The dual function of the multinomial loss: u is one row per sample, and u + (1 at the sample's class) are probabilities."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..losses import Multinomial
from ._linear import LinearDual
from ._products import EPS


class MultinomialDual(LinearDual):
    """Rows of p sum to one, and with an intercept every class has its own share of samples; up to rounding."""

    loss: Multinomial
    typical = spread = 1.0
    normalization = 16 * EPS

    def _targets(self) -> np.ndarray:
        indicators = np.zeros((len(self.loss.b), self.loss.classes))
        indicators[np.arange(len(indicators)), self.loss.b] = 1.0
        return indicators

    def clipped(self, u: np.ndarray) -> np.ndarray:
        p: np.ndarray = np.maximum(u + self.b, 0.0)
        p /= p.sum(axis=1, keepdims=True)
        return np.asarray(p - self.b)

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.repeat(super().sizes, self.loss.classes)

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        return float(np.log(self.loss.classes))

    def size(self, u: np.ndarray) -> float:
        return 1.0  # probabilities are rounded

    def _losses(self, u: np.ndarray, extended: bool = False) -> tuple[float, float]:
        """Return sum_j w_j sum_c p log p, and the sum of the sizes of its terms."""
        from scipy.special import entr

        entropy = self.mean(entr(np.maximum(u + self.b, 0.0)).sum(axis=1))
        return -entropy, entropy + 2.0

    def slack(self, u: np.ndarray) -> np.ndarray:
        return np.asarray((u + self.b).min(axis=1))

    def steepness(self, u: np.ndarray, samples: np.ndarray, radius: np.ndarray) -> np.ndarray:
        # The derivative of p log p is 1 + log p, and p is at least halved.
        return np.asarray(2.0 + np.abs(np.log((u + self.b)[samples])))

    def balanced(self, u: np.ndarray) -> np.ndarray:
        """Return p mixed with one distribution for all samples, as little of it as balances every class."""
        p: np.ndarray = u + self.b
        has, wanted = self.weight @ p, self.weight @ self.b
        part = self._imbalance(u, has - wanted, 0.0)[0]
        other = np.maximum(wanted - (1.0 - part) * has, 0.0)
        if not other.any():  # balanced, as far as one can see
            return u.copy()
        return np.asarray((1.0 - part) * p + part * (other / other.sum()) - self.b)

    def _imbalance(self, u: np.ndarray, total: Any, error: Any) -> tuple[float, float, float]:
        """Return the share of p that has to be replaced, by at most 1; entropies are not negative."""
        has = self.weight @ (u + self.b)
        excess = np.divide(total + error, has, out=np.zeros_like(has), where=has > 0)
        return min(float(excess.max(initial=0.0)) * (1.0 + 1e-9), 1.0), 1.0, 0.0
