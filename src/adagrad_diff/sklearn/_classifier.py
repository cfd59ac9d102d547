"""Classification with any loss and any penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.metaestimators import available_if

from ..losses import Logistic
from ._base import LinearEstimator, Problems
from ._choices import CLASSIFICATION, for_two_classes, is_multinomial
from ._classes import Classes, one_vs_rest
from ._data import validated
from ._merge import canonical


def _has_probabilities(estimator: Any) -> bool:
    kind = estimator._kind()
    return issubclass(kind, Logistic) or is_multinomial(kind)


class BaseClassifier(Classes, LinearEstimator):
    """Base of linear classifiers."""

    _losses = CLASSIFICATION

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model; more than two classes one against the rest, unless it is multinomial.

        Parameters
        ----------
        X : array, sparse matrix or Source (n_samples, n_features)
            float32 and float64 are used as they are, and so are CSR and CSC. An
            `adagrad_diff.linalg.Source` is read block by block.
        y : array (n_samples,)
            Classes, numbers or strings.
        sample_weight : array (n_samples,), optional
            Weights >= 0; the mean loss is the weighted mean.

        Returns
        -------
        self
        """
        return self._complete(self._prepare(X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the model by one pass over these samples, for data that arrive in pieces.

        The pass starts where the last call, or `fit`, has ended. Steps are those of AdaGrad-Diff
        with minibatches of `batch_size` samples (32 by default). For a smooth loss, the recursion
        STORM reduces their noise (see docs/stochastic.md). Nothing is certified about the result:
        `stop_reason_` is "partial_fit". If the loss, the intercept or the kind of penalty has
        changed since the last call, only the coefficients are kept.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; X is in memory, and y may lack some of the classes.
        classes : array, optional
            All classes of all pieces. Needed in the first call.

        Returns
        -------
        self
        """
        fitted = hasattr(self, "coef_")
        if classes is None and not fitted:
            raise ValueError(
                "The first call of partial_fit needs 'classes', all classes there are."
            )
        known: Any = self.classes_ if classes is None else np.unique(np.asarray(classes))
        if fitted and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"'classes' is {known}, but it was {self.classes_} in the first call of partial_fit."
            )
        return self._update(self._prepare(X, y, sample_weight, known))

    def _prepare(self, X: Any, y: Any, sample_weight: Any, known: Any = None) -> Problems:
        """Return the problems of `fit`; or of a part of the samples, if all classes are known."""
        part = known is not None
        X, y = validated(self, X, y=y, reset=not part or not hasattr(self, "coef_"))
        labels = self._encode_part(y, known) if part else self._encode(y)
        classes, model = len(self.classes_), self._model()
        weight = self._weights(sample_weight, X, labels, least=1 if part else 2)
        if not part:
            X, labels, weight = canonical(X, labels, weight)
        if is_multinomial(model) and classes > 2:
            return self._problems([model], X, [labels], weight, columns=classes)
        targets = one_vs_rest(labels, classes)
        return self._problems([for_two_classes(model)] * len(targets), X, targets, weight)

    def _scorer(self, X: Any, y: Any, weight: Any) -> Callable[[], float]:
        """Return a function without arguments: the accuracy on these samples."""
        X, y = validated(self, X, y=y, reset=False)
        return lambda: float(np.average(self._class_of(self._scores(X)) == y, weights=weight))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities (n_samples, n_classes) of a logistic loss.

        One-vs-rest probabilities are normalized to sum to one.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        if is_multinomial(self._kind()):
            return np.asarray(softmax(scores, axis=1))
        p = expit(scores)
        total = p.sum(axis=1, keepdims=True)
        return np.asarray(
            np.divide(p, total, out=np.full_like(p, 1.0 / p.shape[1]), where=total > 0)
        )

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


@dataclass(eq=False, repr=False)
class LinearClassifier(BaseClassifier):
    r"""A linear classifier with any loss and any penalty, without a step size to choose.

    .. math:: \min_{w, c}\; \sum_j \omega_j\, \ell(\langle a_j, w\rangle + c, y_j)
              + \alpha\, \varphi(w), \qquad \sum_j \omega_j = 1

    With more than two classes there is one such problem per class against the rest, or a single one
    for "multinomial".

    Parameters
    ----------
    loss : {"hinge", "logistic", "squared_hinge", "multinomial"} or class
        The scalar loss, or a subclass of `LinearModel` for labels -1 and +1, or a functools.partial
        of one. "multinomial" with two classes is "logistic".
    penalty : {"l2", "l1", "elasticnet", "group", "none"}, None or Penalty
        "l2" is half the squared norm. An object of `adagrad_diff.penalties` is used as it is, times
        alpha. With "multinomial" it sees the coefficients (n_features, n_classes) row by row, and
        "group" joins the classes of a feature.
    alpha : float
        Strength of the penalty, >= 0; 0 is no penalty.
    l1_ratio : float
        For "elasticnet": the share of the L1 norm.
    groups : array of int (n_features,), optional
        For "group": the label of each feature's group. By default each feature is a group.
    <fit_intercept>
    <class_weight>
    <solver>
    <batch_size>

    Attributes
    ----------
    <classification>
    <answer>
    <n_samples_seen_>

    Notes
    -----
    <several>

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import LinearClassifier
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = LinearClassifier(loss="hinge", penalty="l1", alpha=0.05).fit(X, y)
    >>> model.coef_.shape, model.predict([[1.0, 0.0, 0.0]]).tolist(), model.stop_reason_
    ((1, 3), ['yes'], 'certified')
    """

    loss: Any = "hinge"
    penalty: Any = "l2"
    alpha: float = 0.01
    _: KW_ONLY
    l1_ratio: float = 0.5
    groups: Any = None
    class_weight: Any = None
