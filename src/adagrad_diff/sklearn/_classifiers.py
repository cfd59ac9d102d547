"""Classifiers with a loss and a penalty of their names."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from .. import _check
from ._classifier import BaseClassifier


@dataclass(eq=False, repr=False)
class LogisticRegression(BaseClassifier):
    r"""Logistic regression, binary or multinomial, with any of four penalties.

    .. math:: \min_{w, c}\; \frac1N \sum_j \log(1 + e^{-y_j z_j}) + \alpha\, \varphi(w), \qquad
              z_j = \langle a_j, w\rangle + c

    and with more than two classes the multinomial loss. It is scikit-learn's LogisticRegression,
    with C = 1 / (N alpha).

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", "group", "none"}, None or Penalty
        "l2" is half the squared norm. An object of `adagrad_diff.penalties` is used as it is, times
        alpha. With more than two classes it sees the coefficients (n_features, n_classes) row by
        row, and "group" joins the classes of a feature.
    <C>
    l1_ratio : float
        For "elasticnet": the share of the L1 norm.
    groups : array of int (n_features,), optional
        For "group": the label of each feature's group. By default each feature, with its
        coefficients for all classes, is a group.
    <fit_intercept>
    <class_weight>
    <solver>
    <batch_size>

    Attributes
    ----------
    <classification>
    <answer>
    <n_samples_seen_>

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import LogisticRegression
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> model = LogisticRegression(penalty="l1", alpha=0.05).fit(X, X[:, 0] > 0)
    >>> np.flatnonzero(model.coef_).tolist()
    [0]
    >>> bool(model.predict_proba([[2.0, 0.0, 0.0]])[0, 1] > 0.9)
    True
    """

    penalty: Any = "l2"
    _: KW_ONLY
    C: float = 1.0
    alpha: float | None = None
    l1_ratio: float = 0.5
    groups: Any = None
    class_weight: Any = None
    loss = "multinomial"


@dataclass(eq=False, repr=False)
class SparseSVC(BaseClassifier):
    r"""A support vector machine that selects features: the hinge loss with an L1 penalty.

    .. math:: \min_{w, c}\; \frac1N \sum_j \max(0, 1 - y_j (\langle a_j, w\rangle + c))
              + \alpha \|w\|_1

    Parameters
    ----------
    <C>
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
    >>> from adagrad_diff.sklearn import SparseSVC
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> model = SparseSVC(alpha=0.1).fit(X, X[:, 0] > 0)
    >>> np.flatnonzero(model.coef_).tolist()
    [0]
    """

    C: float = 1.0
    _: KW_ONLY
    alpha: float | None = None
    class_weight: Any = None
    loss, penalty = "hinge", "l1"


@dataclass(eq=False, repr=False)
class LinearSVC(BaseClassifier):
    r"""A linear support vector machine: the hinge loss, or its square, with a ridge penalty.

    .. math:: \min_{w, c}\; \frac1N \sum_j \max(0, 1 - y_j (\langle a_j, w\rangle + c))
              + \tfrac\alpha2 \|w\|^2

    In contrast to scikit-learn's LinearSVC, the intercept is not penalized, and the hinge loss is
    the default.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
        The hinge loss, or its square.
    <C>
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
    >>> from adagrad_diff.sklearn import LinearSVC
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> model = LinearSVC(C=1.0).fit(X, X[:, 0] > 0)
    >>> model.predict([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]).tolist()
    [True, False]
    """

    loss: Any = "hinge"
    C: float = 1.0
    _: KW_ONLY
    alpha: float | None = None
    class_weight: Any = None
    penalty = "l2"

    def _model(self) -> Any:
        _check.one_of(self.loss, ("hinge", "squared_hinge"), "loss", type(self).__name__)
        return super()._model()
