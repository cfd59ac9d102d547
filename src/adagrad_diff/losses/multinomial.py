"""Multinomial logistic regression: x is a matrix with one column per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import _check
from ..linalg import Samples, kernels
from .linear import LinearModel, LinearOracle

LARGEST_CLASS = 2**31 - 1


class Multinomial(LinearModel):
    r"""The mean of :math:`\log \sum_c \exp(z_{jc}) - z_{j b_j}`, Z = A X, X (features, classes).

    Penalties see the entries of X row by row. `blocks="row"` gives every feature one weight of the
    metric. With an intercept, X has one more row.

    Parameters
    ----------
    b : array of int (N,)
        Classes 0, 1, ...
    classes : int, optional
        The number of classes, by default one more than the largest. `LinearModel` explains the
        other parameters.

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
        least = max(int(self.b.max()) + 1, 2)
        self.classes = least
        if classes is not None:
            self.classes = _check.count(classes, "classes", "Multinomial", least, LARGEST_CLASS)
        self.shape, self.predictions = (*self.shape, self.classes), self.predictions * self.classes

    def _words(self) -> list[str]:
        return [*super()._words(), f"{self.classes} classes"]

    def check_targets(self, b: Any, samples: int) -> np.ndarray:
        numbers = _check.vector(b, "b", samples)
        valid = (numbers >= 0) & (numbers <= LARGEST_CLASS) & (numbers == np.floor(numbers))
        needed = "Multinomial needs classes 0, 1, ..., such as np.unique(y, return_inverse=True)[1]"
        _check.entries(valid, numbers, "b", needed)
        return numbers.astype(np.int64)

    def oracle(self, x: np.ndarray) -> MultinomialOracle:
        self._check_shape(x, f"shape {self.shape} (features, classes)")
        return MultinomialOracle(self, x.shape[2:])

    def samples(self, batch: tuple[int, ...]) -> MultinomialSamples:
        return MultinomialSamples(**vars(super().samples(batch)), classes=self.classes)


@dataclass(frozen=True)
class MultinomialSamples(Samples):
    """Samples with one prediction per class."""

    classes: int = 2

    def residuals(self) -> Callable[[int, int, np.ndarray], None]:
        scores = self.r.reshape(len(self.r), self.classes, -1)
        return partial(kernels.softmax_residuals, scores, self.b, self.weight)


class MultinomialOracle(LinearOracle):
    """The linear oracle with one column per class and trajectory."""

    loss: Multinomial

    def __init__(self, loss: Multinomial, batch: tuple[int, ...]):
        self._trajectories = batch[0] if batch else 1
        super().__init__(loss, (loss.classes * self._trajectories,))

    def residuals(self, column: int | None) -> np.ndarray:
        """Return the residuals of one trajectory, (N, classes)."""
        columns = (column or 0) + self._trajectories * np.arange(self.loss.classes)
        return self._pass.residuals(columns)

    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        total = super().__call__(x.reshape(len(x), -1), out.reshape(len(x), -1))
        # The kernel adds the loss to the first column, and each column has a ridge term.
        value = total.reshape(-1, self._trajectories).sum(axis=0)
        return value if x.ndim > 2 else float(value[0])
