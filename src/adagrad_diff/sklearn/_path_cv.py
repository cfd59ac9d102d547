"""The strength of the penalty by cross-validation, along warm-started paths."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags, indexable
from sklearn.utils.parallel import Parallel, delayed

from .. import _check
from .._messages import warn
from ..linalg import Source
from ..losses import Squared
from . import _ends
from ._base import LinearEstimator
from ._cluster import WithClient, on_cluster
from ._data import weights_of
from ._delegate import Delegate
from ._folds import along_fold, weights_for
from ._grid import given


class PathCV(Delegate, MetaEstimatorMixin, WithClient):
    """A linear model whose strength of the penalty is chosen by cross-validation.

    On each fold all strengths are fitted as one path, from strong to weak, each started from the one before: far less work
    than a grid search, which starts every fit anew. Then the model is fitted to all samples with the best strength.

    Parameters
    ----------
    estimator : linear estimator of adagrad_diff.sklearn
        All but `KernelSVC`. Its own `alpha` (and `C`) is not used. To scale features, put PathCV at the end of a pipeline.
    alphas : array (n_alphas,), optional
        Strengths to try. By default the grid of `path` for all samples.
    n_alphas : int
        How many strengths, if none are given.
    eps : float
        How far down they go, if none are given; see `path`.
    cv : int, splitter or iterable, optional
        As everywhere in scikit-learn: 5 folds by default, stratified for classifiers.
    scoring : str, callable or None
        As everywhere in scikit-learn. None: of classifiers the accuracy, of regressors minus the mean squared error if their
        loss is squared, else minus the mean of their own loss (of several quantiles, the mean over these too).
    n_jobs : int, optional
        Folds to work on at the same time, by joblib: in threads, as `LassoCV` does, which need no copies of X and no time to
        start; `joblib.parallel_config` can ask for processes.
    refit : bool
        Whether to fit the best model to all samples. Without it there are no predictions.
    verbose : int
        Of joblib: larger numbers print more about the progress of the folds.
    client : distributed.Client, optional
        A Dask cluster that works on the folds instead (or an executor of `concurrent.futures`): X and y go out once, and a
        fold whose worker dies is done again. The last fit is made here. Clones share the client; a pickle has none.

    Attributes
    ----------
    alpha_ : float
        The strength with the best mean score over the folds; of equally good ones, the strongest.
    alphas_ : array (n_alphas,)
        In descending order.
    score_path_ : array (n_alphas, n_folds)
        Scores on the samples left out; higher is better.
    mse_path_ : array (n_alphas, n_folds)
        Mean squared errors, if the score is minus that.
    n_splits_ : int
        The number of folds.
    best_estimator_ : estimator
        Fitted to all samples with alpha_.
    coef_, intercept_, classes_, n_iter_, objective_, dual_gap_, converged_, stop_reason_, n_features_in_, feature_names_in_
        Those of best_estimator_, if it has them.

    One `ConvergenceWarning` counts the fits, on folds and on all samples, that did not converge.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import Lasso, PathCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> y = 3 * X[:, 1] + rng.standard_normal(100)
    >>> model = PathCV(Lasso(), n_alphas=10, cv=3).fit(X, y)
    >>> model.mse_path_.shape, bool(0 < model.alpha_ < model.alphas_[0]), abs(model.coef_).round().tolist()
    ((10, 3), True, [0.0, 3.0, 0.0, 0.0, 0.0])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        alphas: Any = None,
        n_alphas: int = 100,
        eps: float = 1e-3,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool = True,
        verbose: int = 0,
        client: Any = None,
    ) -> None:
        self.estimator = estimator
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.verbose = verbose
        self.client = client

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the strength, and fit the model with it.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features)
        y : array (n_samples,)
            Targets or classes.
        sample_weight : array (n_samples,), optional
            Weights >= 0, of fits and of scores (unless the scoring does not take them).
        groups : array (n_samples,), optional
            For splitters that keep groups together, such as GroupKFold.

        Returns
        -------
        self
        """
        owner = type(self).__name__
        self._check(X, owner)
        values = None if self.alphas is None else given(self.alphas, owner)
        walker = self.estimator._walker()
        problems = walker._prepare(
            X, y, sample_weight
        )  # all of the data are checked before they are split
        if values is None:
            values = walker._grid(problems, self.n_alphas, self.eps, owner)
        del problems
        weight = None if sample_weight is None else weights_of(sample_weight, X)
        X, y, groups = indexable(X, y, groups)
        folds = list(
            check_cv(self.cv, y, classifier=is_classifier(self.estimator)).split(X, y, groups)
        )
        scorer = self._scorer()
        if self.client is not None:
            found = on_cluster(
                self.client, owner, self.estimator, X, y, weight, folds, values, scorer
            )
        else:
            work = Parallel(n_jobs=self.n_jobs, verbose=self.verbose, prefer="threads")
            found = work(
                delayed(along_fold)(self.estimator, X, y, weight, *fold, values, scorer)
                for fold in folds
            )
        self.alphas_, self.n_splits_ = values, len(folds)
        self.score_path_ = np.stack([scores for scores, _ in found], axis=1)
        self._squared = _is_mse(self.scoring, walker)
        mean = self.score_path_.mean(axis=1)
        if np.isnan(mean).all():
            raise ValueError(
                f"The 'scoring' of {owner} is NaN for every strength: choose another one."
            )
        self.alpha_ = float(values[np.nanargmax(mean)])  # the first of equals
        reasons = [reason for _, ends in found for reason in ends]
        self.__dict__.pop("best_estimator_", None)  # of an earlier fit
        if self.refit:
            best = clone(self.estimator).set_params(alpha=self.alpha_)
            best._solve(best._prepare(X, y, sample_weight), self.alpha_)
            self.best_estimator_ = best
            reasons.append(best.stop_reason_)
        self._warn([reason for reason in reasons if not _ends.is_converged(reason)], len(reasons))
        return self

    def _check(self, X: Any, owner: str) -> None:
        if not isinstance(self.estimator, LinearEstimator):
            raise TypeError(
                f"The 'estimator' parameter of {owner} must be a linear estimator of adagrad_diff.sklearn, such as Lasso(). "
                f"Got {_check.shown(self.estimator)} instead. For a pipeline, put {owner} at its end; for others there is "
                "scikit-learn's GridSearchCV."
            )
        if isinstance(X, Source):
            raise ValueError(
                f"{owner} splits the samples: give X as an array, a data frame or a sparse matrix, not as a Source."
            )
        _check.flag(self.refit, "refit", owner)

    def _scorer(self) -> Any:
        """What scores a fitted estimator; None if it does that itself."""
        if self.scoring is None:
            return None
        if not (callable(self.scoring) or isinstance(self.scoring, str)):
            raise ValueError(
                f"The 'scoring' parameter of {type(self).__name__} must be the name of one score, a callable or None. Got "
                f"{_check.shown(self.scoring)} instead."
            )
        return check_scoring(self.estimator, self.scoring)

    def _warn(self, reasons: list[str], fits: int) -> None:
        if reasons:
            warn(
                f"{type(self).__name__} did not reach tol={self.estimator.tol} in {len(reasons)} of {fits} fits of "
                f"{type(self.estimator).__name__} ({_ends.count(reasons)}). Increase max_iter, or tol if such answers are good "
                "enough; scaled features (StandardScaler) make the problems easier.",
                ConvergenceWarning,
            )

    @property
    def mse_path_(self) -> np.ndarray:
        """Mean squared errors (n_alphas, n_folds)."""
        if not vars(self).get("_squared", False):
            raise AttributeError(
                f"This {type(self).__name__} has no 'mse_path_': it is not fitted, or its score is not minus the mean squared "
                "error. See 'score_path_'."
            )
        return -self.score_path_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of `best_estimator_`: by `scoring`, or if that is None its own `score`."""
        best, scorer = self._best(), self._scorer()
        if scorer is None:
            return float(best.score(X, y, sample_weight=sample_weight))
        return float(scorer(best, X, y, **weights_for(scorer, sample_weight)))

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = (
            inner.estimator_type,
            inner.classifier_tags,
            inner.regressor_tags,
        )
        tags.target_tags, tags.input_tags.sparse = inner.target_tags, inner.input_tags.sparse
        return tags


def _is_mse(scoring: Any, estimator: Any) -> bool:
    """Whether the score is minus the mean squared error."""
    return scoring == "neg_mean_squared_error" or (
        scoring is None and not is_classifier(estimator) and issubclass(estimator._kind(), Squared)
    )
