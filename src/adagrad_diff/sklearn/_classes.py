"""Labels and class weights of linear classifiers and of classifiers with kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from ._data import weights_of


class Classes(ClassifierMixin):
    """Base of all classifiers. Their scores have one column per problem."""

    class_weight: Any
    classes_: np.ndarray
    _decision: Any  # X -> scores (n_samples, problems)

    def _encode(self, y: Any) -> np.ndarray:
        """Set classes_, and return the labels as 0, 1, ..."""
        encoder = LabelEncoder()
        labels: np.ndarray = encoder.fit_transform(y)
        self.classes_, number = encoder.classes_, len(encoder.classes_)
        if y.dtype.kind not in "iub" or 2 * number > len(y):  # the check is slow for integers
            check_classification_targets(y)
        if number < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the "
                f"data contains only one class: {self.classes_[0]!r}"
            )
        return labels

    def _encode_part(self, y: Any, classes: np.ndarray) -> np.ndarray:
        """Return labels of a part of the samples as positions in `classes`, and set classes_."""
        owner = type(self).__name__
        if len(classes) < 2:
            raise ValueError(f"The 'classes' of {owner} must be at least 2. Got {classes} instead.")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight='balanced' needs all samples, but partial_fit of {owner} sees a part "
                "of them: give a dict."
            )
        if (unknown := np.setdiff1d(y, classes)).size:
            raise ValueError(
                f"y has labels {unknown} that are missing in 'classes' of partial_fit: {classes}."
            )
        self.classes_ = classes
        return np.asarray(np.searchsorted(classes, y))

    def _weights(
        self, sample_weight: Any, X: Any, labels: np.ndarray, least: int = 2
    ) -> np.ndarray | None:
        """Return sample_weight times class_weight, or None if all are equal.

        At least `least` classes must have a positive weight.
        """
        if sample_weight is None and self.class_weight is None:
            return None
        weight = weights_of(sample_weight, X)
        if self.class_weight is not None:
            weight = weight * self._class_weights(labels, weight)[labels]
        present = np.unique(labels[weight > 0]).size
        if present < least:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least {least} classes with a positive "
                f"weight. After sample_weight and class_weight, there are {present}."
            )
        return weight

    def _class_weights(self, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return one weight per class."""
        if self.class_weight == "balanced":
            counts = np.bincount(labels, weights=weight, minlength=len(self.classes_))
            with np.errstate(divide="ignore"):
                return np.where(counts > 0, weight.sum() / (len(counts) * counts), 0.0)
        weights = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_[labels]
        )
        if not (weights >= 0).all():
            raise ValueError(
                f"The 'class_weight' parameter of {type(self).__name__} must hold numbers >= 0. Got "
                f"{self.class_weight} instead."
            )
        return np.asarray(weights, dtype=np.float64)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        scores: np.ndarray = self._decision(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest score of each sample."""
        return self._class_of(self._decision(X))

    def _class_of(self, scores: np.ndarray) -> np.ndarray:
        """Return classes for scores (n_samples, problems)."""
        best = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(np.asarray(self.classes_)[best])


def one_vs_rest(labels: np.ndarray, classes: int) -> list[np.ndarray]:
    """Return vectors of -1 and +1: one for two classes, else one per class."""
    return [np.where(labels == k, 1.0, -1.0) for k in ([1] if classes == 2 else range(classes))]
