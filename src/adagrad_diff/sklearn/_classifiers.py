"""Classifiers by name."""

from __future__ import annotations

from typing import Any

from .. import _check
from ._classifier import BaseClassifier


class LogisticRegression(BaseClassifier):
    r"""Logistic regression, binary or multinomial, with any of four penalties.

    .. math:: \min_{w, c}\; \frac1N \sum_j \log(1 + e^{-y_j z_j}) + \alpha\, \varphi(w), \qquad z_j = \langle a_j, w\rangle + c

    and with more than two classes the multinomial loss. It is scikit-learn's, with C = 1 / (N alpha); the intercept is never
    penalised.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", "group", "none"}, None or Penalty
        As for `LinearClassifier`.
    C : float
        As in scikit-learn: alpha = 1 / (N C), with N the sum of the sample weights.
    alpha : float, optional
        The strength itself, >= 0; if given, C is not used.
    l1_ratio : float
        For "elasticnet": the share of the L1 norm.
    groups : array of int (n_features,), optional
        For "group": the label of each feature's group; by default each feature, with its coefficients for all classes, is one.
    fit_intercept, class_weight, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every, batch_size
        As for `LinearClassifier`.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, objective_, dual_gap_, converged_, stop_reason_
        As for `LinearClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import LogisticRegression
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> model = LogisticRegression(penalty="l1", alpha=0.05).fit(X, X[:, 0] > 0)
    >>> np.flatnonzero(model.coef_).tolist(), bool(model.predict_proba([[2.0, 0.0, 0.0]])[0, 1] > 0.9)
    ([0], True)
    """

    C: Any
    loss = "multinomial"

    def __init__(
        self,
        penalty: Any = "l2",
        *,
        C: float = 1.0,
        alpha: float | None = None,
        l1_ratio: float = 0.5,
        groups: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10000,
        eta: Any = "auto",
        warm_start: bool = False,
        verbose: int = 0,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
        batch_size: int | None = None,
    ) -> None:
        self._keep(locals())


class SparseSVC(BaseClassifier):
    r"""A support vector machine that selects features: the hinge loss with an L1 penalty.

    .. math:: \min_{w, c}\; \frac1N \sum_j \max(0, 1 - y_j (\langle a_j, w\rangle + c)) + \alpha \|w\|_1

    Parameters
    ----------
    C : float
        As in scikit-learn: alpha = 1 / (N C), with N the sum of the sample weights.
    alpha : float, optional
        The strength itself, >= 0; if given, C is not used.
    fit_intercept, class_weight, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every, batch_size
        As for `LinearClassifier`.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, objective_, dual_gap_, converged_, stop_reason_
        As for `LinearClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import SparseSVC
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> model = SparseSVC(alpha=0.1).fit(X, X[:, 0] > 0)
    >>> np.flatnonzero(model.coef_).tolist()
    [0]
    """

    C: Any
    loss, penalty = "hinge", "l1"

    def __init__(
        self,
        C: float = 1.0,
        *,
        alpha: float | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10000,
        eta: Any = "auto",
        warm_start: bool = False,
        verbose: int = 0,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
        batch_size: int | None = None,
    ) -> None:
        self._keep(locals())


class LinearSVC(BaseClassifier):
    r"""A linear support vector machine: the hinge loss, or its square, with a ridge penalty.

    .. math:: \min_{w, c}\; \frac1N \sum_j \max(0, 1 - y_j (\langle a_j, w\rangle + c)) + \tfrac\alpha2 \|w\|^2

    Other than in scikit-learn's LinearSVC, the intercept is not penalised, and the hinge loss is the default.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
    C : float
        As in scikit-learn: alpha = 1 / (N C), with N the sum of the sample weights.
    alpha : float, optional
        The strength itself, >= 0; if given, C is not used.
    fit_intercept, class_weight, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every, batch_size
        As for `LinearClassifier`.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, objective_, dual_gap_, converged_, stop_reason_
        As for `LinearClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import LinearSVC
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> model = LinearSVC(C=1.0).fit(X, X[:, 0] > 0)
    >>> model.predict([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]).tolist()
    [True, False]
    """

    C: Any
    penalty = "l2"

    def __init__(
        self,
        loss: Any = "hinge",
        C: float = 1.0,
        *,
        alpha: float | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10000,
        eta: Any = "auto",
        warm_start: bool = False,
        verbose: int = 0,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
        batch_size: int | None = None,
    ) -> None:
        self._keep(locals())

    def _model(self) -> Any:
        _check.one_of(self.loss, ("hinge", "squared_hinge"), "loss", type(self).__name__)
        return super()._model()
