"""Least squares with penalties that select."""

from __future__ import annotations

from typing import Any

from ._regressor import BaseRegressor


class Lasso(BaseRegressor):
    r"""Least squares with an L1 penalty, as scikit-learn's Lasso.

    .. math:: \min_{w, c}\; \frac1{2N} \sum_j (y_j - \langle a_j, w\rangle - c)^2 + \alpha \|w\|_1

    Parameters
    ----------
    alpha : float
        Strength of the penalty, >= 0.
    fit_intercept, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every, batch_size
        As for `LinearRegressor`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, objective_, dual_gap_, converged_, stop_reason_
        As for `LinearRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import Lasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> Lasso(alpha=0.1).fit(X, 3 * X[:, 1]).coef_.round(1).tolist()
    [0.0, 2.9, 0.0]
    """

    loss, penalty = "squared", "l1"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
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


class ElasticNet(BaseRegressor):
    r"""Least squares with an L1 and a ridge penalty, as scikit-learn's ElasticNet.

    .. math:: \min_{w, c}\; \frac1{2N} \sum_j (y_j - \langle a_j, w\rangle - c)^2 + \alpha \rho \|w\|_1 +
              \tfrac12 \alpha (1 - \rho) \|w\|^2

    Parameters
    ----------
    alpha : float
        Strength of the penalty, >= 0.
    l1_ratio : float
        The share rho of the L1 norm, between 0 and 1.
    fit_intercept, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every, batch_size
        As for `LinearRegressor`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, objective_, dual_gap_, converged_, stop_reason_
        As for `LinearRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import ElasticNet
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> ElasticNet(alpha=0.1).fit(X, 3 * X[:, 1]).coef_.round(1).tolist()
    [0.0, 2.8, 0.0]
    """

    loss, penalty = "squared", "elasticnet"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
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


class GroupLasso(BaseRegressor):
    r"""Least squares with a penalty that selects whole groups of features.

    .. math:: \min_{w, c}\; \frac1{2N} \sum_j (y_j - \langle a_j, w\rangle - c)^2 + \alpha \sum_g \omega_g \|w_g\|_2

    Parameters
    ----------
    groups : array of int (n_features,), optional
        The label of each feature's group; by default each feature is a group, which is the lasso.
    alpha : float
        Strength of the penalty, >= 0.
    weights : array (n_groups,), optional
        The weights omega, in the order of the sorted labels; 1 by default.
    fit_intercept, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every, batch_size
        As for `LinearRegressor`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, objective_, dual_gap_, converged_, stop_reason_
        As for `LinearRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import GroupLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> abs(GroupLasso(groups=[0, 0, 1], alpha=0.1).fit(X, 3 * X[:, 1]).coef_).round(1).tolist()
    [0.0, 2.9, 0.0]
    """

    loss, penalty = "squared", "group"

    def __init__(
        self,
        groups: Any = None,
        alpha: float = 1.0,
        *,
        weights: Any = None,
        fit_intercept: bool = True,
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
