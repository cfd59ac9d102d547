"""Fits that start from the solution before: warm starts and paths."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone

from adagrad_diff import sklearn as door
from sklearn_data import NAMES, REGRESSORS, data, make

pytestmark = pytest.mark.peer


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", NAMES)
def test_warm_start(name):
    X, y = data(name, samples=40, classes=3)
    model = make(name, warm_start=True).fit(X, y)
    cold, objective = np.max(model.n_iter_), model.objective_
    model.fit(X, y)
    assert np.max(model.n_iter_) <= cold
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-3)
    other = make(name, alpha=0.1).fit(X, y).objective_
    np.testing.assert_allclose(model.set_params(alpha=0.1).fit(X, y).objective_, other, rtol=1e-3)
    model.fit(X[:, :4], y)  # of another shape: from zero
    assert model.n_features_in_ == 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("intercept", [True, False])
def test_warm_start_with_as_many_numbers_in_another_shape(intercept):
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((60, 4)), np.arange(60)
    model = door.LinearClassifier(alpha=0.1, tol=1e-3, fit_intercept=intercept, warm_start=True).fit(X[:, :2], labels % 6)
    cold = door.LinearClassifier(alpha=0.1, tol=1e-3, fit_intercept=intercept).fit(X, labels % 3)
    np.testing.assert_array_equal(model.fit(X, labels % 3).coef_, cold.coef_)  # it started from zero


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REGRESSORS)
def test_warm_start_with_targets_in_other_units(name):
    """The objective at such a start is no measure of anything."""
    X, y = data(name)
    cold = make(name).fit(X, y)
    large = np.round(1e6 * np.abs(y)) if name == "PoissonRegressor" else 1e6 * y
    warm = make(name, warm_start=True, max_iter=3000).fit(X, large).fit(X, y)
    if warm.converged_ and cold.stop_reason_ == "certified":
        assert warm.objective_ <= cold.objective_ + 2e-4 * abs(cold.objective_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_warm_start_that_is_worse_than_zero_is_not_used(loss):
    """Without a proof, a subgradient is compared with that at the start: there it says nothing."""
    X, y = data("Lasso")
    X = np.hstack([X, X])
    cold = door.LinearRegressor(loss=loss, alpha=0.0).fit(X, y)
    warm = door.LinearRegressor(loss=loss, alpha=0.0, warm_start=True).fit(X, 1e6 * y).fit(X, y)
    assert warm.objective_ <= cold.objective_ * (1 + 1e-3)
    assert warm.converged_ == cold.converged_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "KernelSVC"])
def test_path(name):
    X, y = data(name, samples=40, classes=3)
    model = make(name, alpha=0.02, tol=1e-3) if name in REGRESSORS or "Linear" in name else getattr(door, name)(tol=1e-3)
    alphas, coefs, gaps, intercepts = model.path(X, y, [0.02, 0.5, 0.1], return_intercepts=True)
    assert alphas.tolist() == [0.5, 0.1, 0.02]
    assert not hasattr(model, "coef_")
    problems = () if name in REGRESSORS else (3,)
    assert coefs.shape == (*problems, 6, 3)
    assert intercepts.shape == (*problems, 3)
    assert gaps.shape == (() if name == "LogisticRegression" else problems) + (3,)
    last = clone(model).set_params(alpha=0.02).fit(X, y)
    np.testing.assert_allclose(coefs[..., -1], last.coef_, atol=0.05 * np.abs(last.coef_).max())


def test_path_of_two_classes_has_the_shape_of_a_regression():
    X, y = data("SparseSVC")
    _, coefs, gaps = door.SparseSVC().path(X, y, [0.1, 10.0])
    assert coefs.shape == (6, 2)
    assert gaps.shape == (2,)
    assert not coefs[:, 0].any()
    assert coefs[:, 1].any()
