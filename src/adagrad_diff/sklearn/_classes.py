"""Classes: as numbers, with weights, and back from scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from .. import _check


class Classes(ClassifierMixin):
    """What linear classifiers and those with kernels share: both have scores, one column per problem."""

    class_weight: Any
    classes_: np.ndarray
    _decision: Any  # X -> scores (n_samples, problems)

    def _encode(self, y: Any) -> np.ndarray:
        """The classes of y as 0, 1, ...; sets classes_. One class is an error."""
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the data contains only one "
                f"class: {self.classes_[0]!r}"
            )
        return labels

    def _weights(self, sample_weight: Any, X: Any, y: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
        """sample_weight times class_weight, or None if all are equal. At least two classes must have a weight."""
        if sample_weight is None and self.class_weight is None:
            return None
        weight, owner = _check_sample_weight(sample_weight, X, dtype=np.float64), type(self).__name__
        _check.first_where(weight < 0, weight, lambda j, v: f"sample_weight must not be negative. sample_weight[{j}] is {v}.")
        if isinstance(self.class_weight, str):
            _check.one_of(self.class_weight, ("balanced",), "class_weight", owner)
            counts = np.bincount(labels, weights=weight)
            weight = weight * np.divide(weight.sum(), len(counts) * counts, out=np.zeros(len(counts)), where=counts > 0)[labels]
        elif self.class_weight is not None:
            of_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
            _check.first_where(
                ~(np.isfinite(of_class) & (of_class >= 0)),
                of_class,
                lambda k, v: (
                    f"The 'class_weight' parameter of {owner} must hold numbers >= 0. That of class "
                    f"{self.classes_[k].item()!r} is {v}."
                ),
            )
            weight = weight * of_class[labels]
        present = np.bincount(labels, weights=weight > 0) > 0
        if present.sum() < 2:
            raise ValueError(
                f"{owner} needs samples of at least 2 classes with a positive weight: after sample_weight and class_weight at "
                "most one class is left."
            )
        return weight

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, <x, w> + c or h(x) + c: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        scores = self._decision(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample, that with the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]


def one_vs_rest(labels: np.ndarray, classes: int) -> list[np.ndarray]:
    """Vectors of -1 and +1: one for two classes, else one per class."""
    return [np.where(labels == k, 1.0, -1.0) for k in ([1] if classes == 2 else range(classes))]
