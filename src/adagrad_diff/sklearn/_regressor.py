"""Regression with any loss and any penalty."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from .. import _check
from ..losses import Poisson, Squared
from ._base import LinearEstimator, Problems
from ._choices import REGRESSION, kind_of
from ._data import first_text, refuse_huge, validated, weights_of
from ._merge import canonical, is_small


class BaseRegressor(RegressorMixin, LinearEstimator):
    """fit and predict of linear regressors."""

    _losses = REGRESSION

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or Source (n_samples, n_features)
            float32 and float64 are used as they are, CSR and CSC too; an `adagrad_diff.linalg.Source` block by block.
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
        """Go through these samples once, from where the last call (or `fit`) has ended: for data that come piece by piece.

        Steps are those of AdaGrad-Diff with minibatches of `batch_size` samples (32 by default). For a smooth loss, the
        recursion STORM reduces their noise (see docs/stochastic.md). Nothing is proven about the result: `stop_reason_` is
        "partial_fit". If the loss, the intercept or the kind of penalty were changed since the last call, steps begin anew at
        the coefficients.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; X is in memory.

        Returns
        -------
        self
        """
        return self._see(self._prepare(X, y, sample_weight, part=True))

    def _prepare(self, X: Any, y: Any, sample_weight: Any, part: bool = False) -> Problems:
        """What `fit` has to solve, or `partial_fit` to see, of a part of the samples."""
        self._refuse_text(y)
        X, y = validated(self, X, y=y, y_numeric=True, reset=not part or not hasattr(self, "coef_"))
        _check.finite(y, "y")  # scikit-learn does not see None
        refuse_huge(X, "X", X.dtype)
        refuse_huge(y, "y", X.dtype)
        weight = None if sample_weight is None else weights_of(sample_weight, X)
        models, listed = self._models()
        if weight is not None and is_small(X, y):
            models[0](
                X, y, sample_weight=weight
            )  # also looks at samples whose weight is not positive
        samples, target, merged = (X, y, weight) if part else canonical(X, y, weight)
        try:
            return self._problems(models, samples, [target] * len(models), merged, listed=listed)
        except ValueError:
            if samples is not X:
                models[0](
                    X, y, sample_weight=weight
                )  # names the place of what is wrong in y, not where it was sorted to
            raise

    def _models(self) -> tuple[list[Any], bool]:
        """What makes the losses of the problems, and whether they are a list that the user gave."""
        return [self._model()], False

    def _set(self, coef: np.ndarray, intercept: np.ndarray, listed: bool) -> None:
        self.coef_, self.intercept_ = (
            (coef, intercept) if listed else (coef[0], float(intercept[0]))
        )

    def _judge(self, X: Any, y: Any, weight: Any) -> Callable[[], float]:
        """What gives minus the mean loss on these samples, which are looked at once, by the coefficients of the moment.

        Of the squared loss it is minus the mean square, not half of that.
        """
        X, y = validated(self, X, y=y, y_numeric=True, reset=False)
        losses = [model(X, y, sample_weight=weight, intercept=True) for model in self._models()[0]]
        for loss in losses:
            loss.l2 = 0.0  # what a partial may have set is part of the penalty
        unit = -2.0 if issubclass(self._kind(), Squared) else -1.0

        def score() -> float:
            rows = np.column_stack([np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)])
            return unit * float(
                np.mean([loss.value_and_grad(x)[0] for loss, x in zip(losses, rows, strict=True)])
            )

        return score

    def predict(self, X: Any) -> np.ndarray:
        """Predictions (n_samples,): X coef_ + intercept_, or its exponential for the Poisson loss."""
        z = self._decision(X)
        return np.exp(z) if issubclass(self._kind(), Poisson) else z

    def _refuse_text(self, y: Any) -> None:
        if (text := first_text(y)) is not None:
            raise ValueError(
                f"y holds text ({text!r}), but {type(self).__name__} predicts numbers: turn y into numbers, or for words as "
                "classes use a classifier such as LogisticRegression."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ValueError):  # if there is no such loss, fit will say so
            tags.target_tags.positive_only = issubclass(kind_of(self._model()), Poisson)
        return tags


class LinearRegressor(BaseRegressor):
    r"""A linear model with any loss and any penalty, without a step size to choose.

    .. math:: \min_{w, c}\; \sum_j \omega_j\, \ell(\langle a_j, w\rangle + c, y_j) + \alpha\, \varphi(w), \qquad
              \sum_j \omega_j = 1

    Parameters
    ----------
    loss : {"squared", "absolute", "quantile", "huber", "poisson"} or class
        The scalar loss, or a subclass of `LinearModel`, or a functools.partial of one: ``partial(Quantile, tau=0.9)``.
        "squared" is half the square, "quantile" by itself the median, half of "absolute".
    penalty : {"l2", "l1", "elasticnet", "group", "none"}, None or Penalty
        "l2" is half the squared norm. An object of `adagrad_diff.penalties` is used as it is, times alpha.
    alpha : float
        Strength of the penalty, >= 0; 0 is no penalty.
    l1_ratio : float
        For "elasticnet": the share of the L1 norm.
    groups : array of int (n_features,), optional
        For "group": the label of each feature's group; by default each is its own.
    fit_intercept : bool
        Whether to fit an intercept, which is never penalised.
    tol : float
        Stop when the objective is certified to be within tol (relative) of the optimum; of an optimum that is nearly zero,
        within tol times a millionth of the problem's own scale. Also stop, without success, when the best objective has
        improved by less than tol (relative) over the last three quarters of the run, which has at least 512 iterations then.
    max_iter : int
        The most iterations to make.
    eta : "auto" or float
        The step size; there is no need to choose one. With a number, only the gap (or where none is known, the size of a
        subgradient) ends a run before max_iter. Ctrl-C raises `adagrad_diff.Interrupted`.
    warm_start : bool
        Whether `fit` starts from the last solution.
    verbose : int
        1 prints a line every other second and one at the end.
    checkpoint : path, optional
        A directory for fits that may be killed: what they have reached is written there, and the same fit goes on from it and
        ends with the same bits. Each problem (data, loss, penalty, start) has a file of its own, so clones, folds and paths
        can share a directory. Solved problems stay there and are not solved again: delete it when you are through.
    checkpoint_every : float
        Seconds between two writings of a checkpoint.
    batch_size : int, optional
        Samples of a minibatch (see `Minibatch`); an iteration is then a round of about one and a half passes over the data. By
        default eta="auto" decides by itself whether to begin with minibatches. For `partial_fit`, which has 32 by default.

    Attributes
    ----------
    coef_ : array (n_features,)
    intercept_ : float
    n_iter_ : int
    objective_ : float
        Mean loss + alpha x penalty at the solution.
    dual_gap_ : float
        objective_ is proven to be within this of the optimum; inf if nothing is proven.
    converged_ : bool
        Whether tol was reached. If not, there is a `sklearn.exceptions.ConvergenceWarning`.
    stop_reason_ : str
        Why the run ended:

        ============== ================================================================== ==========
        stop_reason_   what happened                                                      converged_
        ============== ================================================================== ==========
        "certified"    `dual_gap_` is within tol: the answer is proven to be that good    True
        "subgradient"  no gap is known for this problem, but a subgradient is within tol  True
        "stalled"      the objective hardly improves any more, and tol is not reached     False
        "max_iter"     the iterations are used up                                         False
        "no_minimizer" nothing limits the coefficients, as with separable classes         False
        "failed"       a number was not finite; the best point before that is kept        False
        ============== ================================================================== ==========
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import LinearRegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> model = LinearRegressor(loss="absolute", penalty="l1", alpha=0.01).fit(X, X[:, 0] - 2 * X[:, 2] + 5)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1), model.converged_, model.stop_reason_
    ([1.0, 0.0, -2.0], 5.0, True, 'certified')
    """

    def __init__(
        self,
        loss: Any = "squared",
        penalty: Any = "l2",
        alpha: float = 0.01,
        *,
        l1_ratio: float = 0.5,
        groups: Any = None,
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
