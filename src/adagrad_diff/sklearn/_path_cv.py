"""The strength of the penalty by cross-validation, along warm-started paths."""

from __future__ import annotations

import inspect
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, _clone_parametrized, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import _safe_split, available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._messages import warn
from ..losses import Squared
from ..sweeps.workers import run_tasks
from ._base import Documented, LinearEstimator
from ._data import refuse_source, weights_of
from ._path import sorted_strengths
from ._solve import CONVERGED, count

ATTRIBUTES = (  # of `best_estimator_`, which PathCV has as well
    *("coef_", "intercept_", "classes_", "n_iter_", "objective_", "dual_gap_", "converged_"),
    *("stop_reason_", "n_features_in_", "feature_names_in_"),
)


def _delegated(name: str) -> Any:
    """Return a method that calls the method of `best_estimator_`, if that has one."""

    def call(self: Any, X: Any) -> np.ndarray:
        return getattr(self._best(), name)(X)  # type: ignore[no-any-return]

    call.__name__, call.__doc__ = name, f"Return `{name}` of `best_estimator_`."
    return available_if(
        lambda self: hasattr(vars(self).get("best_estimator_", self.estimator), name)
    )(call)


@dataclass(eq=False, repr=False)
class PathCV(MetaEstimatorMixin, Documented):
    """A linear model whose strength of the penalty is chosen by cross-validation.

    On each fold all strengths are fitted as one path, from strong to weak, each started from the
    previous one. This is far less work than a grid search, which starts every fit from zero. Then
    the model is fitted to all samples with the best strength. One `ConvergenceWarning` counts the
    fits, on folds and on all samples, that did not converge.

    Parameters
    ----------
    estimator : linear estimator of adagrad_diff.sklearn
        All but `KernelSVC`. Its own `alpha` (and `C`) is not used. To scale features, put PathCV at
        the end of a pipeline.
    alphas : array (n_alphas,), optional
        Strengths to try. By default the grid of `path` for all samples.
    n_alphas : int
        Number of strengths, if alphas is not given.
    eps : float
        Ratio of the smallest to the largest strength, if alphas is not given; see `path`.
    cv : int, splitter or iterable, optional
        As everywhere in scikit-learn: 5 folds by default, stratified for classifiers.
    scoring : str, callable or None
        As everywhere in scikit-learn. None means accuracy for classifiers. For regressors it is
        minus the mean squared error if their loss is squared, else minus the mean of their own loss
        (for several quantiles, the mean over them).
    n_jobs : int, optional
        Number of folds that joblib works on at the same time: in threads, as `LassoCV` does, which
        need no copies of X and no time to start. `joblib.parallel_config` can ask for processes.
    refit : bool
        Whether to fit the best model to all samples. Without it there are no predictions.
    verbose : int
        Passed to joblib: larger numbers print more about the progress of the folds.
    client : distributed.Client, optional
        A Dask cluster that works on the folds instead (or an executor of `concurrent.futures`). X
        and y are sent once, and a fold whose worker dies is repeated. The last fit is made in this
        process. Clones share the client; a pickle has none.

    Attributes
    ----------
    alpha_ : float
        The strength with the best mean score over the folds; the largest of equally good ones.
    alphas_ : array (n_alphas,)
        Strengths in descending order.
    score_path_ : array (n_alphas, n_folds)
        Scores on the samples left out; higher is better.
    mse_path_ : array (n_alphas, n_folds)
        Mean squared errors, if the score is minus that.
    n_splits_ : int
        Number of folds.
    best_estimator_ : estimator
        Fitted to all samples with `alpha_`.
    coef_, intercept_, classes_, n_iter_, objective_, dual_gap_, converged_, stop_reason_
        Attributes of `best_estimator_`, if it has them.
    n_features_in_, feature_names_in_
        Attributes of `best_estimator_`, if it has them.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import Lasso, PathCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> y = 3 * X[:, 1] + rng.standard_normal(100)
    >>> model = PathCV(Lasso(), n_alphas=10, cv=3).fit(X, y)
    >>> model.mse_path_.shape, bool(0 < model.alpha_ < model.alphas_[0])
    ((10, 3), True)
    >>> abs(model.coef_).round().tolist()
    [0.0, 3.0, 0.0, 0.0, 0.0]
    """

    estimator: Any
    _: KW_ONLY
    alphas: Any = None
    n_alphas: int = 100
    eps: float = 1e-3
    cv: Any = None
    scoring: Any = None
    n_jobs: int | None = None
    refit: bool = True
    verbose: int = 0
    client: Any = None

    predict = _delegated("predict")
    decision_function = _delegated("decision_function")
    predict_proba = _delegated("predict_proba")
    predict_log_proba = _delegated("predict_log_proba")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the strength, and fit the model with it.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features)
            Samples.
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
        self._check_parameters(owner)
        refuse_source(X, owner)
        values = None if self.alphas is None else sorted_strengths(self.alphas, owner)
        model = self.estimator._path_model()
        problems = model._prepare(X, y, sample_weight)  # checks all data before they are split
        if values is None:
            values = model._grid(problems, self.n_alphas, self.eps, owner)
        del problems
        weight = None if sample_weight is None else weights_of(sample_weight, X)
        X, y, groups = indexable(X, y, groups)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        folds = list(splitter.split(X, y, groups))
        found = self._scores_of(folds, X, y, weight, values)
        self.alphas_, self.n_splits_ = values, len(folds)
        self.score_path_ = np.stack([scores for scores, _ in found], axis=1)
        self._has_mse = self.scoring == "neg_mean_squared_error" or (
            self.scoring is None and not is_classifier(model) and issubclass(model._kind(), Squared)
        )
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
        bad = [reason for reason in reasons if reason not in CONVERGED]
        if bad:
            warn(
                f"{owner} did not reach tol={self.estimator.tol} in {len(bad)} of {len(reasons)} "
                f"fits of {type(self.estimator).__name__} ({count(bad)}). Increase max_iter, or tol "
                "if such answers are good enough; scaled features (StandardScaler) make the "
                "problems easier.",
                ConvergenceWarning,
            )
        return self

    def _check_parameters(self, owner: str) -> None:
        if not isinstance(self.estimator, LinearEstimator):
            raise TypeError(
                f"The 'estimator' parameter of {owner} must be a linear estimator of "
                f"adagrad_diff.sklearn, such as Lasso(). Got {_check.shown(self.estimator)} instead. "
                f"For a pipeline, put {owner} at its end; for others there is scikit-learn's "
                "GridSearchCV."
            )
        _check.flag(self.refit, "refit", owner)

    def _scores_of(
        self, folds: list[Any], X: Any, y: Any, weight: Any, alphas: np.ndarray
    ) -> list[tuple[np.ndarray, list[str]]]:
        """Return scores and reasons of `along_fold` for each fold."""
        scorer, data = self._scorer(), (X, y, weight)
        tasks = {k: (self.estimator, fold, alphas, scorer) for k, fold in enumerate(folds)}
        if self.client is None:
            work = Parallel(n_jobs=self.n_jobs, verbose=self.verbose, prefer="threads")
            return list(work(delayed(along_fold)(*data, *task) for task in tasks.values()))
        name = type(self).__name__
        finished = run_tasks(self.client, name, data, along_fold, tasks, len(tasks))
        found = dict(pair for pair in finished if pair is not None)
        return [found[k] for k in tasks]

    def _scorer(self) -> Any:
        """Return what scores a fitted estimator, or None if it does that itself."""
        return None if self.scoring is None else check_scoring(self.estimator, self.scoring)

    @property
    def mse_path_(self) -> np.ndarray:
        """Mean squared errors (n_alphas, n_folds)."""
        if not vars(self).get("_has_mse", False):
            raise AttributeError(
                f"This {type(self).__name__} has no 'mse_path_': it is not fitted, or its score is "
                "not minus the mean squared error. See 'score_path_'."
            )
        return -self.score_path_

    def __getattr__(self, name: str) -> Any:
        if name in ATTRIBUTES and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(
            f"This {type(self).__name__} has no {name!r}. Attributes of the best estimator need "
            "'fit' with refit=True."
        )

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of `best_estimator_`: by `scoring`, or if that is None its own."""
        best, scorer = self._best(), self._scorer()
        if scorer is None:
            return float(best.score(X, y, sample_weight=sample_weight))
        return float(scorer(best, X, y, **weights_for(scorer, sample_weight)))

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    # A client is a connection: clones share it, and pickles have none.

    def __sklearn_clone__(self) -> Any:
        bare = copy(self)
        bare.client = None
        twin = _clone_parametrized(bare)
        twin.client = self.client
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}


def along_fold(
    X: Any, y: Any, weight: Any, estimator: Any, fold: Any, alphas: np.ndarray, scorer: Any
) -> tuple[np.ndarray, list[str]]:
    """Return the scores on the samples left out, and why the fits ended, for each strength."""
    train, test = fold
    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, y_test = _safe_split(estimator, X, y, test, train)
    left_out = None if weight is None else weight[test]
    model = estimator._path_model()
    problems = model._prepare(X_train, y_train, None if weight is None else weight[train])
    if scorer is None:
        score = model._scorer(X_test, y_test, left_out)
    else:
        score = lambda: scorer(model, X_test, y_test, **weights_for(scorer, left_out))
    scores, reasons = np.empty(len(alphas)), []
    for k, _ in enumerate(model._along(problems, alphas)):
        scores[k] = score()
        reasons.append(model.stop_reason_)
    return scores, reasons


def weights_for(scorer: Any, weight: Any) -> dict[str, Any]:
    """Return the weights as an argument, if there are any and the scorer takes them."""
    if weight is None:
        return {}
    known = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    takes = any(p.name == "sample_weight" or p.kind == p.VAR_KEYWORD for p in known)
    return {"sample_weight": weight} if takes else {}
