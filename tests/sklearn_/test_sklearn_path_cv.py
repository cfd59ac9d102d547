"""PathCV: the strength of the penalty by cross-validation, as scikit-learn's users know it."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LassoCV
from sklearn.metrics import (
    accuracy_score,
    make_scorer,
    max_error,
    mean_pinball_loss,
    mean_squared_error,
)
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline

from adagrad_diff import sklearn as door
from adagrad_diff.linalg import Source
from sklearn_data import data

pytestmark = pytest.mark.peer


def rough(estimator=None, **options):
    """A quick one."""
    return door.PathCV(
        door.Lasso(tol=1e-3) if estimator is None else estimator,
        **{"n_alphas": 4, "cv": 3} | options,
    )


def test_it_is_scikit_learns_lasso_cv():
    X, y = data("Lasso")
    weight = np.random.default_rng(1).uniform(0.1, 2.0, len(y))
    for given in (None, weight):
        ours = door.PathCV(door.Lasso(tol=1e-6), n_alphas=6, cv=4).fit(X, y, sample_weight=given)
        theirs = LassoCV(alphas=ours.alphas_, cv=4, tol=1e-8).fit(X, y, sample_weight=given)
        np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-3)
        np.testing.assert_array_equal(ours.mse_path_, -ours.score_path_)
        assert ours.n_splits_ == 4
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-2)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)


def test_the_best_model_is_the_one_fitted_by_hand():
    X, y = data("ElasticNet")
    model = rough(door.ElasticNet(tol=1e-3)).fit(X, y)
    alone = door.ElasticNet(model.alpha_, tol=1e-3).fit(X, y)
    for name in (
        "coef_",
        "intercept_",
        "n_iter_",
        "objective_",
        "dual_gap_",
        "converged_",
        "stop_reason_",
        "n_features_in_",
    ):
        np.testing.assert_array_equal(getattr(model, name), getattr(alone, name))
    assert model.best_estimator_.get_params() == alone.get_params()
    assert model.alphas_.shape == (4,)
    assert model.score_path_.shape == (4, 3)
    assert (np.diff(model.alphas_) < 0).all()
    assert model.alpha_ == model.alphas_[model.score_path_.mean(axis=1).argmax()]


def by_hand(estimator, X, y, weight, score):
    """Scores for each strength and fold of a fit that starts from the strength before."""
    columns = []
    for train, test in KFold(3).split(X):
        alphas, coefs, _, intercepts = estimator.path(
            X[train], y[train], [0.3, 0.03], sample_weight=weight[train], return_intercepts=True
        )
        columns.append(
            [
                score(y[test], X[test] @ coefs[:, k] + intercepts[k], weight[test])
                for k in range(len(alphas))
            ]
        )
    return np.array(columns).T


@pytest.mark.parametrize(
    ("estimator", "score"),
    [
        (
            door.QuantileRegressor(0.8, tol=1e-2),
            lambda y, z, w: -mean_pinball_loss(y, z, sample_weight=w, alpha=0.8),
        ),
        (door.ElasticNet(tol=1e-3), lambda y, z, w: -mean_squared_error(y, z, sample_weight=w)),
        (
            door.PoissonRegressor(tol=1e-3),
            lambda y, z, w: -np.average(np.exp(z) - y * z, weights=w),
        ),
        (
            door.LogisticRegression(tol=1e-3),
            lambda y, z, w: accuracy_score(y, z > 0, sample_weight=w),
        ),
    ],
)
def test_default_scores(estimator, score):
    X, y = data(type(estimator).__name__)
    weight = np.random.default_rng(1).uniform(0.1, 2.0, len(y))
    model = door.PathCV(estimator, alphas=[0.03, 0.3], cv=KFold(3)).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        model.score_path_, by_hand(estimator, X, y, weight, score), rtol=1e-10
    )
    assert hasattr(model, "mse_path_") == isinstance(estimator, door.ElasticNet)


def never(estimator, X, y):
    return np.nan


def flat(estimator, X, y):
    return float(len(estimator.coef_))


def test_scoring():
    X, y = data("Lasso")
    weight = np.where(np.arange(len(y)) % 2, 1.0, 0.01)
    mine, theirs = (
        rough(scoring=scoring).fit(X, y, sample_weight=weight)
        for scoring in (None, "neg_mean_squared_error")
    )
    np.testing.assert_allclose(
        mine.score_path_, theirs.score_path_, rtol=1e-10
    )  # the scorer has seen the weights
    assert theirs.mse_path_.shape == (4, 3)
    assert theirs.score(X, y) == pytest.approx(-mean_squared_error(y, theirs.predict(X)))
    odd = rough(scoring=make_scorer(max_error, greater_is_better=False)).fit(
        X, y, sample_weight=weight
    )  # takes no weights
    assert (odd.score_path_ < 0).all()
    assert not hasattr(odd, "mse_path_")
    assert (alike := rough(scoring=flat).fit(X, y)).alpha_ == alike.alphas_[0]
    with pytest.raises(ValueError, match="'scoring' of PathCV is NaN for every strength"):
        rough(scoring=never).fit(X, y)
    with pytest.raises(ValueError, match="is not a valid scoring value"):
        rough(scoring=["r2", "max_error"]).fit(X, y)


def test_ties_go_to_the_stronger_penalty():
    X, y = data("Lasso")
    assert rough(alphas=[50.0, 1e6, 100.0]).fit(X, y).alpha_ == 1e6


@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers(classes):
    X, y = data("LogisticRegression", classes=classes)
    names = np.array(["low", "middle", "high"])[y]
    model = rough(door.LogisticRegression(tol=1e-3)).fit(X, names)
    assert model.classes_.tolist() == sorted(set(names))
    assert set(model.predict(X)) == set(names)
    assert model.predict_proba(X).shape == (len(y), classes)
    np.testing.assert_allclose(np.log(model.predict_proba(X)), model.predict_log_proba(X))
    assert model.decision_function(X).shape == ((len(y),) if classes == 2 else (len(y), 3))
    assert model.score(X, names) > 0.7
    assert is_classifier(model)
    assert not hasattr(rough(door.SparseSVC()), "predict_proba")
    assert is_regressor(rough())
    assert not hasattr(rough(), "decision_function")


def test_without_refit():
    X, y = data("Lasso")
    model = rough(refit=False).fit(X, y)
    assert model.alpha_ > 0
    assert not hasattr(model, "coef_")
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        rough().predict(X)
    assert not hasattr(rough().fit(X, y).set_params(refit=False).fit(X, y), "best_estimator_")


def test_groups():
    X, y = data("Lasso")
    groups = np.arange(len(y)) % 5
    folds = list(GroupKFold(4).split(X, y, groups))
    given = rough(cv=GroupKFold(4)).fit(X, y, groups=groups)
    np.testing.assert_array_equal(given.score_path_, rough(cv=folds).fit(X, y).score_path_)
    with pytest.raises(ValueError, match="groups"):
        rough(cv=GroupKFold(4)).fit(X, y)


def test_one_warning_counts_all_fits():
    X, y = data("Lasso")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rough(door.Lasso(max_iter=1, tol=0.0), alphas=[0.1, 0.01]).fit(X, y)
    assert [w.category for w in caught] == [ConvergenceWarning]
    assert "in 7 of 7 fits of Lasso (7 at max_iter)" in str(caught[0].message)
    assert caught[0].filename == __file__


class Impatient:
    """A penalty that is interrupted in the midst of a run."""

    def value(self, x):
        return 0.0

    def prox(self, z, step):
        raise KeyboardInterrupt


def test_an_interrupt_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        rough(door.LinearRegressor(penalty=Impatient()), alphas=[1.0]).fit(*data("Lasso"))


class Empty(Source):
    shape, cuts = (4, 1), (0, 4)

    def block(self, k):
        return np.zeros((4, 1))


@pytest.mark.parametrize(
    ("model", "X", "error", "sentence"),
    [
        (
            rough(door.KernelSVC()),
            None,
            TypeError,
            r"must be a linear estimator .* Got KernelSVC\(\) instead",
        ),
        (
            rough(make_pipeline(door.Lasso())),
            None,
            TypeError,
            "For a pipeline, put PathCV at its end",
        ),
        (rough(), Empty(), ValueError, "PathCV needs all samples in memory"),
        (rough(refit="yes"), None, ValueError, "'refit' parameter of PathCV must be True or False"),
        (rough(alphas=[]), None, ValueError, "'alphas' parameter of PathCV is empty"),
        (
            rough(alphas=[-1.0]),
            None,
            ValueError,
            "'alphas' parameter of PathCV must be a number >= 0",
        ),
        (
            rough(eps=2.0),
            None,
            ValueError,
            "'eps' parameter of PathCV must be a number strictly between 0 and 1",
        ),
        (
            rough(n_alphas=0),
            None,
            ValueError,
            "'n_alphas' parameter of PathCV must be an integer >= 1",
        ),
    ],
)
def test_sentences(model, X, error, sentence):
    given, y = data("Lasso")
    with pytest.raises(error, match=sentence):
        model.fit(given if X is None else X, y)
