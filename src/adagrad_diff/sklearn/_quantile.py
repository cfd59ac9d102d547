"""Quantile regression, of one quantile or of several."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .. import _check
from ..losses import Quantile
from ._regressor import BaseRegressor


class QuantileRegressor(BaseRegressor):
    r"""A conditional quantile, or several: the pinball loss and an L1 penalty, as scikit-learn's QuantileRegressor.

    .. math:: \min_{w, c}\; \frac1N \sum_j \max(\tau t_j, (\tau - 1) t_j) + \alpha \|w\|_1, \qquad
              t_j = y_j - \langle a_j, w\rangle - c

    Parameters
    ----------
    quantile : float or list of float
        The quantile tau, strictly between 0 and 1. A list is one problem for each, which starts from the solution of the one
        before: give them in order.
    alpha : float
        Strength of the L1 penalty, >= 0.
    noncrossing : bool
        Whether the predictions for several quantiles are sorted, so that a higher quantile is never below a lower one. This
        rearrangement is never worse: the mean over the quantiles of the pinball loss does not grow. The coefficients are the
        same.
    fit_intercept, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every, batch_size
        As for `LinearRegressor`.

    Attributes
    ----------
    coef_ : array (n_features,), or (n_quantiles, n_features) for a list
    intercept_ : float, or array (n_quantiles,)
    n_iter_, objective_, dual_gap_
        As for `LinearRegressor`; arrays (n_quantiles,) for a list.
    converged_, stop_reason_
        As for `LinearRegressor`; of a list whether all converged, and the worst.

    References
    ----------
    V. Chernozhukov, I. Fernandez-Val, A. Galichon, Quantile and probability curves without crossing, Econometrica 78, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import QuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = X[:, 0] + rng.exponential(size=200)
    >>> model = QuantileRegressor(quantile=0.9, alpha=0.01).fit(X, y)
    >>> bool(0.85 < (y <= model.predict(X)).mean() < 0.95)
    True
    >>> model = QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0.01, noncrossing=True).fit(X, y)
    >>> model.coef_.shape, (y[:, None] <= model.predict(X)).mean(axis=0).round(1).tolist()
    ((3, 3), [0.1, 0.5, 0.9])
    """

    quantile: Any
    noncrossing: Any
    loss, penalty = "quantile", "l1"

    def __init__(
        self,
        quantile: Any = 0.5,
        alpha: float = 1.0,
        *,
        noncrossing: bool = False,
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

    def predict(self, X: Any) -> np.ndarray:
        """Predictions (n_samples,), or (n_samples, n_quantiles) for a list of quantiles: X coef_' + intercept_, sorted if
        noncrossing."""
        z = super().predict(X)
        if z.ndim == 2 and self.noncrossing:
            z[:, np.argsort(self._levels, kind="stable")] = np.sort(z, axis=1)
        return z

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2. For a list of quantiles the mean of D^2, the share of each one's pinball loss that is explained: at most 1, and
        0 for the quantiles of y itself."""
        from sklearn.metrics import d2_pinball_score

        z = self.predict(X)
        if z.ndim == 1:
            return float(super().score(X, y, sample_weight))
        columns = zip(self._levels, z.T, strict=True)
        return float(
            np.mean(
                [
                    d2_pinball_score(y, z, sample_weight=sample_weight, alpha=tau)
                    for tau, z in columns
                ]
            )
        )

    def _set(self, coef: np.ndarray, intercept: np.ndarray, listed: bool) -> None:
        super()._set(coef, intercept, listed)
        self._levels = self._taus()[0]  # those of coef_, whatever the parameter will be

    def _options(self) -> dict[str, Any]:
        _check.flag(self.noncrossing, "noncrossing", type(self).__name__)
        return super()._options()

    def _taus(self) -> tuple[list[float], bool]:
        """The quantiles, and whether they are a list."""
        owner, listed = type(self).__name__, np.ndim(self.quantile) > 0
        taus = [
            _check.positive(tau, "quantile", owner)
            for tau in (np.ravel(self.quantile) if listed else [self.quantile])
        ]
        if not taus or max(taus) >= 1 or np.ndim(self.quantile) > 1:
            raise ValueError(
                f"The 'quantile' parameter of {owner} must lie strictly between 0 and 1, or be a list of such numbers. Got "
                f"{_check.shown(self.quantile)} instead."
            )
        return taus, listed

    def _model(self) -> Any:
        return self._models()[0][0]

    def _models(self) -> tuple[list[Any], bool]:
        taus, listed = self._taus()
        return [partial(Quantile, tau=tau) for tau in taus], listed
