"""Classification with any loss and any penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from .. import _check
from ..losses import Logistic
from ._base import FLOATS, LinearEstimator, is_multinomial
from ._choices import CLASSIFICATION, kind_of, model_of, penalty_of
from ._merge import canonical


def encode(estimator: Any, y: Any) -> np.ndarray:
    """The classes of y as 0, 1, ...; sets classes_. One class is an error."""
    check_classification_targets(y)
    estimator.classes_, labels = np.unique(y, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes in the data, but the data contains only one "
            f"class: {estimator.classes_[0]!r}"
        )
    return labels


def weights_of(estimator: Any, sample_weight: Any, X: Any, y: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    """sample_weight times class_weight, or None if all are equal. A class that has no weight is an error."""
    if sample_weight is None and estimator.class_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    _check.first_where(weight < 0, weight, lambda j, v: f"sample_weight must not be negative. sample_weight[{j}] is {v}.")
    if isinstance(estimator.class_weight, str):
        _check.one_of(estimator.class_weight, ("balanced",), "class_weight", type(estimator).__name__)
        counts = np.bincount(labels, weights=weight)
        weight = weight * np.divide(weight.sum(), len(counts) * counts, out=np.zeros(len(counts)), where=counts > 0)[labels]
    elif estimator.class_weight is not None:
        weight = weight * compute_class_weight(estimator.class_weight, classes=estimator.classes_, y=y)[labels]
    present = np.bincount(labels, weights=weight > 0) > 0
    if present.sum() < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes with a positive weight: after sample_weight and "
            "class_weight at most one class is left."
        )
    return weight


def one_vs_rest(labels: np.ndarray, classes: int) -> list[np.ndarray]:
    """Vectors of -1 and +1: one for two classes, else one per class."""
    return [np.where(labels == k, 1.0, -1.0) for k in ([1] if classes == 2 else range(classes))]


def _has_probabilities(estimator: Any) -> bool:
    kind = kind_of(estimator._model())
    return issubclass(kind, Logistic) or is_multinomial(kind)


class BaseClassifier(ClassifierMixin, LinearEstimator):
    """fit and predict of linear classifiers."""

    class_weight: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None):
        """Fit the model; more than two classes one against the rest, unless the loss is multinomial.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
            float32 and float64 are used as they are, CSR and CSC too.
        y : array (n_samples,)
            Classes, numbers or strings.
        sample_weight : array (n_samples,), optional
            Weights >= 0; the mean loss is the weighted mean.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), dtype=FLOATS)
        labels = encode(self, y)
        classes, model = len(self.classes_), self._model()
        X, labels, weight = canonical(X, labels, weights_of(self, sample_weight, X, y, labels))
        if is_multinomial(model) and classes > 2:
            solutions = self._solve(model, X, [labels], weight, columns=classes)
        else:
            solutions = self._solve(Logistic if is_multinomial(model) else model, X, one_vs_rest(labels, classes), weight)
        self._report(solutions)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """X coef_' + intercept_: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        scores = self._decision(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample, that with the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n_samples, n_classes), for logistic losses; one-vs-rest ones are normalised to sum to one."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        if is_multinomial(self._model()):
            return softmax(scores, axis=1)
        p = expit(scores)
        total = p.sum(axis=1, keepdims=True)
        return np.divide(p, total, out=np.full_like(p, 1.0 / p.shape[1]), where=total > 0)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class LinearClassifier(BaseClassifier):
    r"""A linear classifier with any loss and any penalty, without a step size to choose.

    .. math:: \min_{w, c}\; \sum_j \omega_j\, \ell(\langle a_j, w\rangle + c, y_j) + \alpha\, \varphi(w), \qquad
              \sum_j \omega_j = 1

    With more than two classes one such problem per class against the rest, or a single one for "multinomial".

    Parameters
    ----------
    loss : {"hinge", "logistic", "squared_hinge", "multinomial"} or class
        The scalar loss, or a subclass of `LinearModel` for labels -1 and +1, or a functools.partial of one.
        "multinomial" with two classes is "logistic".
    penalty : {"l2", "l1", "elasticnet", "group", "none"}, None or Penalty
        "l2" is half the squared norm. An object of `adagrad_diff.penalties` is used as it is, times alpha; with "multinomial"
        it sees the coefficients (n_features, n_classes) row by row, and "group" joins the classes of a feature.
    alpha : float
        Strength of the penalty, >= 0; 0 is no penalty.
    l1_ratio, groups, fit_intercept, tol, max_iter, eta, warm_start, verbose
        As for `LinearRegressor`.
    class_weight : dict, "balanced" or None
        Weights of the classes, by which sample weights are multiplied.

    Attributes
    ----------
    classes_ : array (n_classes,)
    coef_ : array (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : array (1,) or (n_classes,)
    n_iter_, objective_, dual_gap_
        As for `LinearRegressor`; one per class for one-vs-rest.
    converged_ : {"certified", "stalled", "max_iter", "failed"}
        Why the run ended; the worst of one-vs-rest.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import LinearClassifier
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> model = LinearClassifier(loss="hinge", penalty="l1", alpha=0.05).fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    >>> model.coef_.shape, model.predict([[1.0, 0.0, 0.0]]).tolist(), model.converged_
    ((1, 3), ['yes'], 'certified')
    """

    def __init__(
        self,
        loss="hinge",
        penalty="l2",
        alpha=0.01,
        *,
        l1_ratio=0.5,
        groups=None,
        fit_intercept=True,
        class_weight=None,
        tol=1e-4,
        max_iter=10000,
        eta="auto",
        warm_start=False,
        verbose=0,
    ):
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.eta = eta
        self.warm_start = warm_start
        self.verbose = verbose

    def _model(self):
        return model_of(self.loss, CLASSIFICATION, type(self).__name__)

    def _penalty(self, alpha, shape):
        return penalty_of(self.penalty, alpha, shape, type(self).__name__, self.l1_ratio, self.groups)
