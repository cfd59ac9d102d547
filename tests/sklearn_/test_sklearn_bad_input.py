"""Input that is wrong is named in a sentence; input that is merely odd is fitted."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from adagrad_diff import L1, LAD, Hinge, Logistic, Multinomial, Squared, critical_lam
from adagrad_diff import sklearn as door
from pairwise import pairwise

pytestmark = pytest.mark.peer
NAMES = [name for name in door.__all__ if name != "PathCV"]
CLASSIFIERS = ["KernelSVC", "LinearClassifier", "LinearSVC", "LogisticRegression", "SparseSVC"]
REGRESSORS = [name for name in NAMES if name not in CLASSIFIERS]


def data(name, samples=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((samples, 5))
    y = X[:, 0] + 0.3 * rng.standard_normal(samples)
    return X, (y > 0).astype(int) if name in CLASSIFIERS else y + 5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("eta", ["fast", 0.0])
def test_wrong_step_sizes(name, eta):
    with pytest.raises(
        ValueError, match=rf"The 'eta' parameter of {name} must be 'auto' or a positive number. Got"
    ):
        getattr(door, name)(eta=eta).fit(*data(name))


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            door.LinearRegressor("hinge"),
            "The 'loss' parameter of LinearRegressor must be one of 'absolute'",
        ),
        (door.LinearRegressor(loss=3), "The 'loss' parameter of LinearRegressor"),
        (
            door.LinearRegressor(penalty="l3"),
            "The 'penalty' parameter of LinearRegressor must be one of 'l1'",
        ),
        (
            door.LinearRegressor(penalty="group", groups=[0, 1]),
            "The 'groups' parameter of LinearRegressor must hold one integer",
        ),
        (
            door.ElasticNet(l1_ratio=2.0),
            "The 'l1_ratio' parameter of ElasticNet must lie between 0 and 1",
        ),
        (
            door.QuantileRegressor(quantile=1.5),
            "The 'quantile' parameter of QuantileRegressor must lie strictly between 0 and 1",
        ),
        (
            door.HuberRegressor(epsilon=0.0),
            "The 'epsilon' parameter of HuberRegressor must be a positive number",
        ),
        (door.GroupLasso(groups=[0, 0, 1, 1, 1], weights=[1.0]), "The 'weights' parameter"),
        (door.PoissonRegressor(), "Poisson needs targets >= 0"),
        (
            door.LinearRegressor(Multinomial),
            "The 'loss' parameter of LinearRegressor is multinomial, which is for classes",
        ),
        (
            door.ElasticNet(alpha=0.0, l1_ratio=2.0),
            "The 'l1_ratio' parameter of ElasticNet must lie between 0 and 1",
        ),
        (
            door.GroupLasso(alpha=0.0, groups=[0, 1]),
            "The 'groups' parameter of GroupLasso must hold one integer",
        ),
    ],
)
def test_wrong_options_of_regressors(model, sentence):
    X, y = data("Lasso")
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y - 5)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            door.LinearClassifier("absolute"),
            "The 'loss' parameter of LinearClassifier must be one of 'hinge'",
        ),
        (
            door.LinearSVC("absolute"),
            "The 'loss' parameter of LinearSVC must be one of 'hinge', 'squared_hinge'",
        ),
        (
            door.LogisticRegression(C=0.0),
            "The 'C' parameter of LogisticRegression must be a positive number",
        ),
        (door.KernelSVC(alpha=0.0), "The 'alpha' parameter of KernelSVC must be positive"),
        (
            door.KernelSVC(gamma="big"),
            "The 'gamma' parameter of KernelSVC must be 'scale', 'auto' or a number >= 0",
        ),
        (
            door.KernelSVC(gamma=-1.0),
            "The 'gamma' parameter of KernelSVC must be 'scale', 'auto' or a number >= 0",
        ),
        (
            door.KernelSVC(gamma=None),
            "The 'gamma' parameter of KernelSVC must be 'scale', 'auto' or a number >= 0",
        ),
        (door.KernelSVC(kernel=np.eye(60)), "must be a str among .* or a callable"),
        (door.KernelSVC(kernel="precomputed"), "A precomputed kernel needs a square matrix"),
        (door.KernelSVC(kernel=lambda A, B: A), "The kernel must return a matrix of shape"),
        (door.LinearSVC(class_weight={0: 0.0}), "at least 2 classes with a positive weight"),
    ],
)
def test_wrong_options_of_classifiers(model, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(*data("LinearSVC"))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class(name):
    X, y = data(name)
    with pytest.raises(
        ValueError,
        match="needs samples of at least 2 classes in the data, but the data contains only one class",
    ):
        getattr(door, name)().fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="at least 2 classes with a positive weight"):
        getattr(door, name)().fit(X, y, sample_weight=y)


@pairwise(name=REGRESSORS, alpha=[0.0, 0.1], value=[0.0, 3.0, 1e9], samples=[1, 60])
def test_equal_targets(name, alpha, value, samples):
    """The answer is a constant."""
    X, y = data(name, samples)
    if name == "PoissonRegressor" and value == 0.0:
        pytest.skip("the intercept would be -inf")
    model = getattr(door, name)(alpha=alpha).fit(X, np.full(len(y), value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-9, atol=1e-6)
    assert model.stop_reason_ == "certified"
    assert not model.coef_.any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_counts_that_are_all_zero():
    X, y = data("PoissonRegressor")
    model = door.PoissonRegressor().fit(X, np.zeros(len(y)))
    assert (model.predict(X) < 0.1).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "KernelSVC"])
def test_no_penalty(name):
    """On data that are not separable."""
    X, y = data(name)
    if name in CLASSIFIERS:
        y = np.where(np.arange(len(y)) % 7 == 0, 1 - y, y)
    model = getattr(door, name)(alpha=0.0).fit(X, y)
    assert model.stop_reason_ in ("certified", "subgradient", "stalled")
    assert model.coef_.all()
    assert model.score(X, y) > 0.4


LOSSES = {"LADRegressor": LAD, "Lasso": Squared, "SparseSVC": Hinge, "LogisticRegression": Logistic}


@pairwise(name=LOSSES, fraction=[0.9, 1.0 + 1e-9, 100.0], intercept=[True, False])
def test_the_critical_strength(name, fraction, intercept):
    """From it on all coefficients are zero, at once; below it they are not."""
    X, y = data(name)
    y = np.where(X[:, 1] > 1, 1, y) if name in CLASSIFIERS else y  # classes of different sizes
    targets = np.where(y == 1, 1, -1) if name in CLASSIFIERS else y
    alpha = fraction * critical_lam(LOSSES[name](X, targets, intercept=intercept), L1(1.0))
    penalty = {"penalty": "l1"} if name == "LogisticRegression" else {}
    model = getattr(door, name)(alpha=alpha, fit_intercept=intercept, **penalty).fit(X, y)
    assert model.coef_.any() == (fraction < 1)
    if fraction > 1:
        assert model.stop_reason_ == "certified"
        assert model.n_iter_ == 1
        assert (
            0.0 <= model.dual_gap_ <= 1e-8 * model.objective_
        )  # the bound may be that of another point within tol
