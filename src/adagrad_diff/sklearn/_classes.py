"""Classes: as numbers, with weights, and back from scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from .. import _check
from ._data import summable, weights_of


class Classes(ClassifierMixin):
    """What linear classifiers and those with kernels share: both have scores, one column per problem."""

    class_weight: Any
    classes_: np.ndarray
    _decision: Any  # X -> scores (n_samples, problems)

    def _encode(self, y: Any) -> np.ndarray:
        """The classes of y as 0, 1, ...; sets classes_. One class is an error."""
        # scikit-learn takes long to see that integers are classes, unless there are very many of them, of which it warns.
        if y.dtype.kind not in "iub" or 2 * len(np.unique(y)) > len(y):
            self._refuse_numbers(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the data contains only one class: "
                f"{self.classes_[0]!r}"
            )
        return labels

    def _encode_part(self, y: Any, classes: np.ndarray) -> np.ndarray:
        """The same for a part of the samples, when all classes are known."""
        owner = type(self).__name__
        if len(classes) < 2:
            raise ValueError(f"The 'classes' of {owner} must be at least 2. Got {classes} instead.")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight='balanced' is not for partial_fit of {owner}, which does not see all samples: give a dict."
            )
        if not np.isin(y, classes).all():
            strange = np.unique(y[~np.isin(y, classes)])[0].item()
            raise ValueError(
                f"y holds {strange!r}, which is none of the classes given to partial_fit: {classes}."
            )
        self.classes_ = classes
        return np.asarray(np.searchsorted(classes, y))

    def _refuse_numbers(self, y: Any) -> None:
        """Raise unless y holds classes."""
        owner = type(self).__name__
        kinds = {type(v).__name__ for v in y} if y.dtype == object else set()
        if "str" in kinds and len(kinds) > 1:
            others = ", ".join(sorted(kinds - {"str"}))
            raise ValueError(
                f"y mixes str and {others}: give {owner} labels that are all text, or all numbers."
            )
        try:
            check_classification_targets(y)
        except ValueError as error:
            if y.dtype.kind != "f":
                raise
            j = int(np.argmax(y != np.round(y)))
            raise ValueError(
                f"{error} {owner} predicts classes, but y[{j}] is {y[j]}: turn y into labels, for example by y > "
                f"{np.median(y):.3g}, or use a regressor such as LinearRegressor."
            ) from None

    def _weights(
        self, sample_weight: Any, X: Any, labels: np.ndarray, least: int = 2
    ) -> np.ndarray | None:
        """sample_weight times class_weight, or None if all are equal. At least so many classes must have a weight."""
        if sample_weight is None and self.class_weight is None:
            return None
        weight, owner = weights_of(sample_weight, X), type(self).__name__
        _check.entries(weight >= 0, weight, "sample_weight", "Weights must not be negative")
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            counts = np.bincount(labels, weights=weight)
            weight = (
                weight
                * np.divide(
                    weight.sum(), len(counts) * counts, out=np.zeros(len(counts)), where=counts > 0
                )[labels]
            )
        elif self.class_weight is not None:
            with np.errstate(over="ignore"):  # what overflows is refused
                weight = summable(weight * self._of_classes()[labels])
        present = np.bincount(labels, weights=weight > 0) > 0
        if least == 1 and not present.any():
            raise ValueError(
                f"{owner}: no sample of this piece has a positive weight, after sample_weight and class_weight. Leave it out."
            )
        if present.sum() < least:
            raise ValueError(
                f"{owner} needs samples of at least 2 classes with a positive weight: after sample_weight and class_weight at "
                "most one class is left."
            )
        return weight

    def _of_classes(self) -> np.ndarray:
        """The weights of the classes, 1 for those without one."""
        parameter, given = (
            f"The 'class_weight' parameter of {type(self).__name__}",
            self.class_weight,
        )
        if not isinstance(given, Mapping):
            wanted = "a dict from classes to weights, 'balanced' or None"
            raise ValueError(f"{parameter} must be {wanted}. Got {_check.shown(given)} instead.")
        classes = self.classes_.tolist()
        for label, value in given.items():
            # Of classes that are not there, as in a part of the data, only if all others have a weight: it might be a misprint.
            if label not in classes and not all(c in given for c in classes):
                known = ", ".join(repr(c) for c in classes)
                raise ValueError(
                    f"{parameter} has a weight for {label!r}, which is none of the classes {known}."
                )
            try:
                _check.nonnegative(value, "class_weight", "")
            except ValueError:
                raise ValueError(
                    f"{parameter} must hold numbers >= 0. That of class {label!r} is {value!r}."
                ) from None
        return np.array([float(given.get(c, 1.0)) for c in classes])

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, <x, w> + c or h(x) + c: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        scores: np.ndarray = self._decision(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample, that with the largest score."""
        return self._class_of(self._decision(X))

    def _class_of(self, scores: np.ndarray) -> np.ndarray:
        """The class with the largest of the scores (n_samples, problems)."""
        best = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(np.asarray(self.classes_)[best])


def one_vs_rest(labels: np.ndarray, classes: int) -> list[np.ndarray]:
    """Vectors of -1 and +1: one for two classes, else one per class."""
    return [np.where(labels == k, 1.0, -1.0) for k in ([1] if classes == 2 else range(classes))]
