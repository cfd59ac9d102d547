"""Regression with any loss and any penalty."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from ..losses import Poisson, Squared
from ._base import LinearEstimator, Problems
from ._choices import REGRESSION, kind_of
from ._data import validated, weights_of
from ._merge import canonical


class BaseRegressor(RegressorMixin, LinearEstimator):
    """Base of linear regressors."""

    _losses = REGRESSION

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or Source (n_samples, n_features)
            float32 and float64 are used as they are, and so are CSR and CSC. An
            `adagrad_diff.linalg.Source` is read block by block.
        y : array (n_samples,)
            Targets.
        sample_weight : array (n_samples,), optional
            Weights >= 0; the mean loss is the weighted mean.

        Returns
        -------
        self
        """
        return self._complete(self._prepare(X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Update the model by one pass over these samples, for data that arrive in pieces.

        The pass starts where the last call, or `fit`, has ended. Steps are those of AdaGrad-Diff
        with minibatches of `batch_size` samples (32 by default). For a smooth loss, the recursion
        STORM reduces their noise (see docs/stochastic.md). Nothing is certified about the result:
        `stop_reason_` is "partial_fit". If the loss, the intercept or the kind of penalty has
        changed since the last call, only the coefficients are kept.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; X is in memory.

        Returns
        -------
        self
        """
        return self._update(self._prepare(X, y, sample_weight, part=True))

    def _prepare(self, X: Any, y: Any, sample_weight: Any, part: bool = False) -> Problems:
        """Return the problems of `fit`, or of `partial_fit` for a part of the samples."""
        reset = not part or not hasattr(self, "coef_")
        X, y = validated(self, X, y, numeric=True, reset=reset)
        weight = None if sample_weight is None else weights_of(sample_weight, X)
        models, listed = self._models()
        rows, targets, merged = (X, y, weight) if part else canonical(X, y, weight)
        try:
            return self._problems(models, rows, targets, merged, listed=listed)
        except ValueError:
            models[0](X, y, sample_weight=weight)  # its message has the place in the user's y
            raise

    def _models(self) -> tuple[list[Any], bool]:
        """Return what creates the loss of each problem, and whether the user gave a list."""
        return [self._model()], False

    def _set(self, coef: np.ndarray, intercept: np.ndarray, listed: bool) -> None:
        self.coef_, self.intercept_ = (
            (coef, intercept) if listed else (coef[0], float(intercept[0]))
        )

    def _scorer(self, X: Any, y: Any, weight: Any) -> Callable[[], float]:
        """Return a function without arguments: minus the mean loss on these samples.

        For the squared loss it is minus the mean square, not half of it.
        """
        X, y = validated(self, X, y, numeric=True, reset=False)
        losses = [model(X, y, sample_weight=weight, intercept=True) for model in self._models()[0]]
        for loss in losses:
            loss.l2 = 0.0  # set by a partial, it belongs to the penalty
        unit = -2.0 if issubclass(self._kind(), Squared) else -1.0

        def score() -> float:
            rows = np.column_stack([np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)])
            values = [loss.value_and_grad(x)[0] for loss, x in zip(losses, rows, strict=True)]
            return unit * float(np.mean(values))

        return score

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n_samples,): X coef_ + intercept_, or its exponential for Poisson."""
        z = self._decision(X)
        return np.exp(z) if issubclass(self._kind(), Poisson) else z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ValueError):  # fit reports an unknown loss
            tags.target_tags.positive_only = issubclass(kind_of(self._model()), Poisson)
        return tags


@dataclass(eq=False, repr=False)
class LinearRegressor(BaseRegressor):
    r"""A linear model with any loss and any penalty, without a step size to choose.

    .. math:: \min_{w, c}\; \sum_j \omega_j\, \ell(\langle a_j, w\rangle + c, y_j)
              + \alpha\, \varphi(w), \qquad \sum_j \omega_j = 1

    Parameters
    ----------
    loss : {"squared", "absolute", "quantile", "huber", "poisson"} or class
        The scalar loss, or a subclass of `LinearModel`, or a functools.partial of one:
        ``partial(Quantile, tau=0.9)``. "squared" is half the square. "quantile" alone is the
        median, half of "absolute".
    penalty : {"l2", "l1", "elasticnet", "group", "none"}, None or Penalty
        "l2" is half the squared norm. An object of `adagrad_diff.penalties` is used as it is, times
        alpha.
    alpha : float
        Strength of the penalty, >= 0; 0 is no penalty.
    l1_ratio : float
        For "elasticnet": the share of the L1 norm.
    groups : array of int (n_features,), optional
        For "group": the label of each feature's group. By default each feature is a group.
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
    >>> from adagrad_diff.sklearn import LinearRegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> y = X[:, 0] - 2 * X[:, 2] + 5
    >>> model = LinearRegressor(loss="absolute", penalty="l1", alpha=0.01).fit(X, y)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1), model.stop_reason_
    ([1.0, 0.0, -2.0], 5.0, 'certified')
    """

    loss: Any = "squared"
    penalty: Any = "l2"
    alpha: float = 0.01
    _: KW_ONLY
    l1_ratio: float = 0.5
    groups: Any = None
