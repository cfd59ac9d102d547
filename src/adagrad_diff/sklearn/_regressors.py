"""Regressors with a loss and a penalty of their names."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from .. import _check
from ..losses import Huber
from ._regressor import BaseRegressor


@dataclass(eq=False, repr=False)
class LADRegressor(BaseRegressor):
    r"""Least absolute deviations with an L1 penalty.

    .. math:: \min_{w, c}\; \frac1N \sum_j |y_j - \langle a_j, w\rangle - c| + \alpha \|w\|_1

    Parameters
    ----------
    alpha : float
        Strength of the L1 penalty, >= 0. The pinball loss of the median is half of the absolute
        loss, so QuantileRegressor(alpha=alpha / 2) is the same.
    <fit_intercept>
    <solver>
    <batch_size>

    Attributes
    ----------
    <regression>
    <answer>
    <n_samples_seen_>

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import LADRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = 3 * X[:, 1] + 0.1 * rng.standard_cauchy(200)
    >>> abs(LADRegressor(alpha=0.05).fit(X, y).coef_).round(1).tolist()
    [0.0, 3.0, 0.0]
    """

    alpha: float = 1.0
    loss, penalty = "absolute", "l1"


@dataclass(eq=False, repr=False)
class HuberRegressor(BaseRegressor):
    r"""The Huber loss, quadratic for errors up to epsilon and linear beyond, with a ridge penalty.

    .. math:: \min_{w, c}\; \frac1N \sum_j H_\epsilon(y_j - \langle a_j, w\rangle - c)
              + \tfrac\alpha2 \|w\|^2

    In contrast to scikit-learn's HuberRegressor, epsilon is in units of y: no scale of the errors
    is fitted.

    Parameters
    ----------
    epsilon : float
        Error from which on the loss is linear, in units of y.
    alpha : float
        Strength of the ridge penalty, >= 0.
    <fit_intercept>
    <solver>
    <batch_size>

    Attributes
    ----------
    <regression>
    <answer>
    <n_samples_seen_>

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import HuberRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = 3 * X[:, 1] + 0.1 * rng.standard_cauchy(200)
    >>> abs(HuberRegressor(epsilon=0.2, alpha=0.001).fit(X, y).coef_).round(1).tolist()
    [0.0, 3.0, 0.0]
    """

    epsilon: float = 1.35
    alpha: float = 0.0001
    loss, penalty = "huber", "l2"

    def _model(self) -> Any:
        return partial(Huber, delta=_check.positive(self.epsilon, "epsilon", type(self).__name__))


@dataclass(eq=False, repr=False)
class PoissonRegressor(BaseRegressor):
    r"""The Poisson deviance with a log link and a ridge penalty, for counts.

    .. math:: \min_{w, c}\; \frac1N \sum_j (e^{z_j} - y_j z_j) + \tfrac\alpha2 \|w\|^2, \qquad
              z_j = \langle a_j, w\rangle + c

    It is scikit-learn's PoissonRegressor. Predictions are :math:`e^z`; `score` is the explained
    deviance D^2.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, >= 0.
    <fit_intercept>
    <solver>
    <batch_size>

    Attributes
    ----------
    <regression>
    <answer>
    <n_samples_seen_>

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import PoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = rng.poisson(np.exp(1 + X[:, 1]))
    >>> abs(PoissonRegressor(alpha=0.001).fit(X, y).coef_).round(1).tolist()
    [0.0, 1.0, 0.0]
    """

    alpha: float = 1.0
    loss, penalty = "poisson", "l2"

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return D^2, the explained share of the deviance: at most 1, and 0 for a constant."""
        from sklearn.metrics import d2_tweedie_score

        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))


@dataclass(eq=False, repr=False)
class Lasso(BaseRegressor):
    r"""Least squares with an L1 penalty, as scikit-learn's Lasso.

    .. math:: \min_{w, c}\; \frac1{2N} \sum_j (y_j - \langle a_j, w\rangle - c)^2 + \alpha \|w\|_1

    Parameters
    ----------
    alpha : float
        Strength of the penalty, >= 0.
    <fit_intercept>
    <solver>
    <batch_size>

    Attributes
    ----------
    <regression>
    <answer>
    <n_samples_seen_>

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import Lasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> Lasso(alpha=0.1).fit(X, 3 * X[:, 1]).coef_.round(1).tolist()
    [0.0, 2.9, 0.0]
    """

    alpha: float = 1.0
    loss, penalty = "squared", "l1"


@dataclass(eq=False, repr=False)
class ElasticNet(BaseRegressor):
    r"""Least squares with an L1 and a ridge penalty, as scikit-learn's ElasticNet.

    .. math:: \min_{w, c}\; \frac1{2N} \sum_j (y_j - \langle a_j, w\rangle - c)^2
              + \alpha \rho \|w\|_1 + \tfrac12 \alpha (1 - \rho) \|w\|^2

    Parameters
    ----------
    alpha : float
        Strength of the penalty, >= 0.
    l1_ratio : float
        The share rho of the L1 norm, between 0 and 1.
    <fit_intercept>
    <solver>
    <batch_size>

    Attributes
    ----------
    <regression>
    <answer>
    <n_samples_seen_>

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import ElasticNet
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> ElasticNet(alpha=0.1).fit(X, 3 * X[:, 1]).coef_.round(1).tolist()
    [0.0, 2.8, 0.0]
    """

    alpha: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 0.5
    loss, penalty = "squared", "elasticnet"


@dataclass(eq=False, repr=False)
class GroupLasso(BaseRegressor):
    r"""Least squares with a penalty that selects whole groups of features.

    .. math:: \min_{w, c}\; \frac1{2N} \sum_j (y_j - \langle a_j, w\rangle - c)^2
              + \alpha \sum_g \omega_g \|w_g\|_2

    Parameters
    ----------
    groups : array of int (n_features,), optional
        The label of each feature's group. By default each feature is a group, which is the lasso.
    alpha : float
        Strength of the penalty, >= 0.
    weights : array (n_groups,), optional
        The weights omega, in the order of the sorted labels; 1 by default.
    <fit_intercept>
    <solver>
    <batch_size>

    Attributes
    ----------
    <regression>
    <answer>
    <n_samples_seen_>

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import GroupLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> abs(GroupLasso(groups=[0, 0, 1], alpha=0.1).fit(X, 3 * X[:, 1]).coef_).round(1).tolist()
    [0.0, 2.9, 0.0]
    """

    groups: Any = None
    alpha: float = 1.0
    _: KW_ONLY
    weights: Any = None
    loss, penalty = "squared", "group"
