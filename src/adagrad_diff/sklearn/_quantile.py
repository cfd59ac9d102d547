"""Quantile regression for one quantile or several."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import _check
from ..losses import Quantile
from ._regressor import BaseRegressor


@dataclass(eq=False, repr=False)
class QuantileRegressor(BaseRegressor):
    r"""A conditional quantile, or several: the pinball loss with an L1 penalty.

    .. math:: \min_{w, c}\; \frac1N \sum_j \max(\tau t_j, (\tau - 1) t_j) + \alpha \|w\|_1, \qquad
              t_j = y_j - \langle a_j, w\rangle - c

    It is scikit-learn's QuantileRegressor.

    Parameters
    ----------
    quantile : float or list of float
        The quantile tau, strictly between 0 and 1. A list is one problem for each, which starts
        from the solution of the previous one: give them in order.
    alpha : float
        Strength of the L1 penalty, >= 0.
    noncrossing : bool
        Whether the predictions for several quantiles are sorted, so that a higher quantile is never
        below a lower one. This rearrangement never increases the mean pinball loss over the
        quantiles. The coefficients are the same.
    <fit_intercept>
    <solver>
    <batch_size>

    Attributes
    ----------
    coef_ : array (n_features,), or (n_quantiles, n_features) for a list
        Coefficients.
    intercept_ : float, or array (n_quantiles,)
        Intercept, zero without fit_intercept.
    <answer>
    <n_samples_seen_>

    Notes
    -----
    For a list of quantiles, `objective_`, `dual_gap_` and `n_iter_` are arrays with one entry per
    quantile, `converged_` says whether all problems converged, and `stop_reason_` is the worst.

    References
    ----------
    V. Chernozhukov, I. Fernandez-Val, A. Galichon, Quantile and probability curves without
    crossing, Econometrica 78, 2010.

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

    quantile: Any = 0.5
    alpha: float = 1.0
    _: KW_ONLY
    noncrossing: bool = False
    loss, penalty = "quantile", "l1"

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n_samples,), or (n_samples, n_quantiles) for a list of quantiles.

        They are X coef_' + intercept_, sorted if `noncrossing`.
        """
        z = super().predict(X)
        if z.ndim == 2 and self.noncrossing:
            z[:, np.argsort(self._levels, kind="stable")] = np.sort(z, axis=1)
        return z

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2, or for a list of quantiles the mean of D^2.

        D^2 is the explained share of the pinball loss: at most 1, and 0 for the quantiles of y.
        """
        from sklearn.metrics import d2_pinball_score

        z = self.predict(X)
        if z.ndim == 1:
            return float(super().score(X, y, sample_weight))
        scores = [
            d2_pinball_score(y, column, sample_weight=sample_weight, alpha=tau)
            for tau, column in zip(self._levels, z.T, strict=True)
        ]
        return float(np.mean(scores))

    def _set(self, coef: np.ndarray, intercept: np.ndarray, listed: bool) -> None:
        super()._set(coef, intercept, listed)
        self._levels = self._quantiles()[0]  # of coef_, also after set_params

    def _options(self) -> dict[str, Any]:
        _check.flag(self.noncrossing, "noncrossing", type(self).__name__)
        return super()._options()

    def _quantiles(self) -> tuple[list[float], bool]:
        """Return the quantiles, and whether they are a list."""
        owner, listed = type(self).__name__, np.ndim(self.quantile) > 0
        levels = [_check.positive(tau, "quantile", owner) for tau in np.ravel(self.quantile)]
        if not levels or max(levels) >= 1 or np.ndim(self.quantile) > 1:
            raise ValueError(
                f"The 'quantile' parameter of {owner} must lie strictly between 0 and 1, or be a "
                f"list of such numbers. Got {_check.shown(self.quantile)} instead."
            )
        return levels, listed

    def _model(self) -> Any:
        return self._models()[0][0]

    def _models(self) -> tuple[list[Any], bool]:
        levels, listed = self._quantiles()
        return [partial(Quantile, tau=tau) for tau in levels], listed
