"""Poisson regression."""

from __future__ import annotations

from typing import Any

from ._regressor import BaseRegressor


class PoissonRegressor(BaseRegressor):
    r"""Counts: the Poisson deviance with a log link and a ridge penalty, as scikit-learn's PoissonRegressor.

    .. math:: \min_{w, c}\; \frac1N \sum_j (e^{z_j} - y_j z_j) + \tfrac\alpha2 \|w\|^2, \qquad
              z_j = \langle a_j, w\rangle + c

    Predictions are :math:`e^z`; `score` is the explained deviance D^2.

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
    >>> from adagrad_diff.sklearn import PoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = rng.poisson(np.exp(1 + X[:, 1]))
    >>> abs(PoissonRegressor(alpha=0.001).fit(X, y).coef_).round(1).tolist()
    [0.0, 1.0, 0.0]
    """

    loss, penalty = "poisson", "l2"

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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D^2, the share of the Poisson deviance that is explained: at most 1, and 0 for a constant."""
        from sklearn.metrics import d2_tweedie_score

        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))
