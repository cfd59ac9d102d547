"""Multinomial logistic regression: x is a matrix with one column per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import _check
from ..linalg import Samples
from ..linalg.compiling import plain
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
        return partial(softmax_residuals, scores, self.b, self.weight)


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


def _softmax_residuals(z: Any, b: Any, weight: Any, lo: Any, hi: Any, out: Any) -> None:
    part, labels, w = z[lo:hi], b[lo:hi], weight[lo:hi, None].astype(np.float64)
    samples = np.arange(len(part))
    top = part.max(axis=1)
    score = part[samples, labels]
    size = np.exp(part - top[:, None])
    total = size.sum(axis=1, dtype=np.float64)
    losses = np.where(w == 0, 0.0, w * (np.log(total) + (top - score)))
    out[: losses.shape[1]] += losses.sum(axis=0)
    size *= np.where(w == 0, 0.0, w / total)[:, None]
    size[samples, labels] -= w
    part[...] = np.where(w[:, None] == 0, 0.0, size)


@plain(small=_softmax_residuals)
def softmax_residuals(z: Any, b: Any, weight: Any, lo: Any, hi: Any, out: Any) -> None:
    """z (samples, classes, trajectories) <- weight * (softmax(z) - onehot(b)) for samples lo..hi;  out += loss.

    Samples of weight zero have residuals zero. NumPy takes two to five times as long for 10 classes.
    """
    for j in range(lo, hi):
        if weight[j] == 0.0:  # also where a score is infinite
            z[j] = 0.0
            continue
        for k in range(z.shape[2]):
            top = z[j, 0, k]
            for c in range(1, z.shape[1]):
                top = max(top, z[j, c, k])
            score, total = z[j, b[j], k], 0.0
            for c in range(z.shape[1]):
                z[j, c, k] = np.exp(z[j, c, k] - top)
                total += z[j, c, k]
            out[k] += weight[j] * (np.log(total) + (top - score))
            for c in range(z.shape[1]):
                z[j, c, k] *= weight[j] / total
            z[j, b[j], k] -= weight[j]
