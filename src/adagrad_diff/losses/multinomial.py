"""Multinomial logistic regression: x is a matrix with one column per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import kernels
from ..data import Samples
from ._labels import class_count, classes
from .base import Coordinates
from .linear import LinearModel, LinearOracle


class Multinomial(LinearModel):
    r"""The mean of :math:`\log \sum_c \exp(z_{jc}) - z_{j b_j}`, Z = A X, X of shape (features, classes).

    Penalties see X read row by row; `blocks="row"` gives every feature one weight of the metric. With an intercept, X has
    one more row.

    Parameters
    ----------
    b : array of int (N,)
        Classes 0, 1, ...
    classes : int, optional
        Their number, by default one more than the largest. The other parameters are those of `LinearModel`.

    Examples
    --------
    >>> from adagrad_diff import Multinomial
    >>> f, g = Multinomial([[1.0], [2.0]], [0, 1]).value_and_grad([[0.0, 0.0]])
    >>> round(f, 6), g.tolist()
    (0.693147, [[0.25, -0.25]])
    """

    smoothness = 0.5
    predicts_b = False

    def __init__(self, A: Any, b: Any, classes: int | None = None, **options: Any):
        super().__init__(A, b, **options)
        self.classes = class_count(self.b, classes, "Multinomial")
        self.shape, self.predictions = (*self.shape, self.classes), self.predictions * self.classes

    def _words(self) -> list[str]:
        return [*super()._words(), f"{self.classes} classes"]

    def check_targets(self, b: Any, samples: int) -> np.ndarray:
        return classes(b, "Multinomial", samples)

    def oracle(self, x: np.ndarray) -> MultinomialOracle:
        if x.shape[:2] != self.shape or x.ndim > 3:
            raise ValueError(
                f"x must have shape {self.shape} (features, classes). Got shape {x.shape} instead."
            )
        return MultinomialOracle(self, x.shape[2:])

    def samples(self, batch: tuple[int, ...]) -> MultinomialSamples:
        return MultinomialSamples(
            self.b, self.weight, batch, self.theta, None, self.intercept, classes=self.classes
        )

    def coordinates(self) -> Coordinates:
        known = super().coordinates()
        return (
            known
            if known.scale is None
            else replace(known, scale=np.repeat(known.scale, self.classes))
        )


@dataclass(frozen=True)
class MultinomialSamples(Samples):
    """Samples whose loss is that of one number per class."""

    classes: int = 2

    def residuals(self) -> Callable[[int, int, np.ndarray], None]:
        scores = self.r.reshape(len(self.r), self.classes, -1)
        return lambda lo, hi, value: kernels.softmax_residuals(
            scores, self.b, self.weight, lo, hi, value
        )


class MultinomialOracle(LinearOracle):
    """The linear oracle with one column per class and trajectory."""

    loss: Multinomial

    def __init__(self, loss: Multinomial, batch: tuple[int, ...]):
        self._batch, self._trajectories = batch, batch[0] if batch else 1
        super().__init__(loss, (loss.classes * self._trajectories,))

    def residuals(self, column: int | None) -> np.ndarray:
        """Those of one trajectory, (N, classes)."""
        return self._pass.residuals(
            (column or 0) + self._trajectories * np.arange(self.loss.classes)
        )

    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        columns = (len(x), -1)
        total = super().__call__(x.reshape(columns), out.reshape(columns))
        # The kernel puts the loss into the places of the first class; the ridge term has one place per column.
        value = total.reshape(self.loss.classes, self._trajectories).sum(axis=0)
        return value if self._batch else float(value[0])
