"""Robust regression: losses that forgive large errors."""

from __future__ import annotations

from functools import partial
from typing import Any

from .. import _check
from ..losses import Huber
from ._regressor import BaseRegressor


class LADRegressor(BaseRegressor):
    r"""Least absolute deviations with an L1 penalty.

    .. math:: \min_{w, c}\; \frac1N \sum_j |y_j - \langle a_j, w\rangle - c| + \alpha \|w\|_1

    Parameters
    ----------
    alpha : float
        Strength of the L1 penalty, >= 0. Half of the loss is the median's: QuantileRegressor(alpha=alpha / 2) is the same.
    fit_intercept, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every, batch_size
        As for `LinearRegressor`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, objective_, dual_gap_, converged_, stop_reason_
        As for `LinearRegressor`.

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

    loss, penalty = "absolute", "l1"

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


class HuberRegressor(BaseRegressor):
    r"""The Huber loss, quadratic for errors up to epsilon and linear beyond, with a ridge penalty.

    .. math:: \min_{w, c}\; \frac1N \sum_j H_\epsilon(y_j - \langle a_j, w\rangle - c) + \tfrac\alpha2 \|w\|^2

    Other than in scikit-learn's HuberRegressor, epsilon is in units of y: no scale of the errors is fitted.

    Parameters
    ----------
    epsilon : float
        Where the loss turns linear.
    alpha : float
        Strength of the ridge penalty, >= 0.
    fit_intercept, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every, batch_size
        As for `LinearRegressor`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, objective_, dual_gap_, converged_, stop_reason_
        As for `LinearRegressor`.

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

    epsilon: Any
    loss, penalty = "huber", "l2"

    def __init__(
        self,
        epsilon: float = 1.35,
        alpha: float = 0.0001,
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

    def _model(self) -> Any:
        return partial(Huber, delta=_check.positive(self.epsilon, "epsilon", type(self).__name__))
