"""Fits that start from the solution before: warm starts and paths."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone

from adagrad_diff import L1, Box, LInf
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
    model = (
        make(name, alpha=0.02, tol=1e-3)
        if name in REGRESSORS or "Linear" in name
        else getattr(door, name)(tol=1e-3)
    )
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


SELECTING = {
    "Lasso": {},
    "ElasticNet": {"l1_ratio": 0.3},
    "GroupLasso": {"groups": [0, 0, 1, 1, 2, 2]},
    "QuantileRegressor": {"quantile": 0.7},
    "LADRegressor": {"fit_intercept": False},
    "SparseSVC": {},
    "LogisticRegression": {"penalty": "l1"},
    "LinearClassifier": {"loss": "squared_hinge", "penalty": "l1"},
    "LinearRegressor": {"penalty": L1(np.array([1.0, 2.0, 1.0, 1.0, 0.5, 1.0]))},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SELECTING)
def test_the_grid_starts_where_the_first_coefficient_appears(name):
    X, y = data(name, samples=40, classes=3)
    model = getattr(door, name)(**SELECTING[name], tol=1e-5, max_iter=200)
    alphas, _, _ = model.path(X, y, n_alphas=3, eps=0.01)
    np.testing.assert_allclose(alphas / alphas[0], [1.0, 0.1, 0.01])
    _, coefs, gaps = model.path(X, y, [alphas[0], 0.95 * alphas[0]])
    assert not coefs[..., 0].any()
    assert coefs[..., 1].any()
    assert np.max(gaps[..., 0]) < 1e-2


@pytest.mark.parametrize("ratio", [1.0, 0.3])
def test_the_grid_is_scikit_learns(ratio):
    X, y = data("ElasticNet")
    top = np.abs(X.T @ (y - y.mean())).max() / (
        len(y) * ratio
    )  # with the mean of y, X need not be centered
    expected = np.geomspace(top, 1e-3 * top, 7)
    np.testing.assert_allclose(
        door.ElasticNet(l1_ratio=ratio, tol=0.1).path(X, y, n_alphas=7)[0], expected
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "classes"),
    [(door.HuberRegressor(), 0), (door.LinearRegressor(), 0), (door.LogisticRegression(), 3)],
)
def test_the_grid_of_a_ridge_goes_from_no_fit_to_no_penalty(model, classes):
    """In any units."""
    name = type(model).__name__
    X, y = data(name, classes=classes)
    model.set_params(tol=1e-3, max_iter=500)
    alphas, coefs, _ = model.path(X, y, n_alphas=7)
    sizes = np.sqrt((coefs**2).sum(axis=tuple(range(coefs.ndim - 1))))
    assert sizes[0] < 0.01 * sizes[-1]
    assert (np.diff(sizes) > 0).all()
    if name in REGRESSORS:
        free = clone(model).set_params(alpha=1e-9).fit(X, y).coef_
        np.testing.assert_allclose(coefs[..., -1], free, atol=0.02 * np.abs(free).max())
    np.testing.assert_allclose(
        model.set_params(max_iter=1, tol=1.0).path(100 * X, y, n_alphas=7)[0],
        1e4 * alphas,
        rtol=1e-6,
    )


def test_where_no_strength_is_critical_the_user_is_asked():
    X, y = data("LinearRegressor")
    for penalty, why in [
        (Box(0.0, 1.0), "neither a norm nor a seminorm"),
        (None, "seminorm|not known|neither"),
    ]:
        with pytest.raises(
            ValueError,
            match=f"LinearRegressor.path does not know which strengths to try: give 'alphas'.*{why}",
        ):
            door.LinearRegressor(penalty=penalty).path(X, y)
    ties = door.LinearRegressor("absolute", LInf(2.0), fit_intercept=False, tol=0.5)
    assert ties.path(X, np.zeros_like(y), n_alphas=2)[0].tolist() == [
        1.0,
        0.001,
    ]  # nothing to explain


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_alphas": 0}, "'n_alphas' parameter of Lasso.path must be an integer >= 1"),
        ({"eps": 1.0}, "'eps' parameter of Lasso.path must be a number strictly between 0 and 1"),
        ({"eps": 0.0}, "'eps' parameter of Lasso.path must be a number strictly"),
        ({"alphas": []}, "'alphas' parameter of Lasso.path is empty"),
    ],
)
def test_what_is_no_grid_is_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        door.Lasso().path(*data("Lasso"), **options)
