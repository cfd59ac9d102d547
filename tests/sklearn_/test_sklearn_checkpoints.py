"""Fits that crash and are called again end with the bits of a fit in one go; clones, folds and paths share a directory."""

import os
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from adagrad_diff import L1
from adagrad_diff import sklearn as ours

pytestmark = pytest.mark.peer
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
Y = X[:, 0] - 2 * X[:, 3] + RNG.standard_t(2, 40)
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 1])).astype(float)
CLASSES = np.digitize(Y, [-1.0, 1.0])
FITTED = (
    "coef_",
    "intercept_",
    "dual_coef_",
    "support_",
    "n_iter_",
    "objective_",
    "dual_gap_",
    "stop_reason_",
)


class Crash(Exception):
    """The process ends here."""


@pytest.fixture(autouse=True)
def disk(monkeypatch):
    """None of these files has to survive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


class Crashing(L1):
    """An L1 penalty whose prox raises `Crash` in a call that the class counts down to."""

    left = 0

    def apply(self, z, step, out):
        Crashing.left -= 1
        if Crashing.left == 0:
            raise Crash
        super().apply(z, step, out)


@pytest.fixture(autouse=True)
def no_crash():
    Crashing.left = 0


MODELS = {
    "LinearRegressor": ({"loss": "absolute", "penalty": "l1"}, Y),
    "LinearClassifier": ({"penalty": "l1"}, CLASSES),
    "QuantileRegressor": ({"quantile": [0.2, 0.8], "alpha": 0.01}, Y),
    "LADRegressor": ({"alpha": 0.01}, Y),
    "HuberRegressor": ({"alpha": 0.01}, Y),
    "Lasso": ({"alpha": 0.1}, Y),
    "ElasticNet": ({"alpha": 0.1}, Y),
    "GroupLasso": ({"alpha": 0.1, "groups": [0, 0, 1, 1]}, Y),
    "PoissonRegressor": ({"alpha": 0.01}, COUNTS),
    "LogisticRegression": ({}, CLASSES),
    "SparseSVC": ({}, CLASSES),
    "LinearSVC": ({}, CLASSES > 0),
    "KernelSVC": ({}, CLASSES),
}


def assert_same(one, other):
    for name in FITTED:
        assert hasattr(one, name) == hasattr(other, name), name
        if hasattr(one, name):
            pair = getattr(one, name), getattr(other, name)
            if name == "dual_gap_":  # bounds are computed again
                pair = map(np.isfinite, pair)
            np.testing.assert_array_equal(*pair, err_msg=name)


def test_every_estimator_is_here():
    kinds = {name for name in ours.__all__ if hasattr(getattr(ours, name), "fit")} - {"PathCV"}
    assert kinds == MODELS.keys(), "add the new estimator to MODELS"


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_resumes(tmp_path, name):
    """A fit with more iterations starts where the first one stopped."""
    options, y = MODELS[name]
    model = getattr(ours, name)(**options, eta=0.01, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = clone(model).set_params(max_iter=9).fit(X, y)
        for iterations in (4, 9):
            model.set_params(max_iter=iterations, checkpoint=tmp_path / "deep").fit(X, y)
        assert_same(model, whole)
        files = {path.name: path.read_bytes() for path in (tmp_path / "deep").iterdir()}
        assert all(len(file) == 28 and file.endswith(".npz") for file in files)
        assert_same(clone(model).fit(X, y), whole)
    assert {path.name: path.read_bytes() for path in (tmp_path / "deep").iterdir()} == files


@pytest.mark.parametrize(("loss", "tol"), [("absolute", 0.5), ("squared", 1e-4), ("huber", 1e-4)])
def test_a_fit_that_crashed_resumes(tmp_path, loss, tol):
    model = ours.LinearRegressor(loss, Crashing(1.0), alpha=0.1, tol=tol, checkpoint_every=0.0)
    whole = clone(model).fit(X, Y)
    for k in (3, 7):
        Crashing.left = k
        with pytest.raises(Crash):
            clone(model).set_params(checkpoint=tmp_path).fit(X, Y)
    Crashing.left = 0
    resumed = clone(model).set_params(checkpoint=tmp_path).fit(X, Y)
    if loss == "absolute":  # its dual points are means over the iterations since the crash
        assert resumed.converged_
        assert resumed.dual_gap_ <= tol * resumed.objective_
    else:
        assert_same(resumed, whole)


def test_parameters(tmp_path):
    for name in MODELS:
        model = getattr(ours, name)(checkpoint=tmp_path, checkpoint_every=5.0)
        assert clone(model).get_params()["checkpoint"] == tmp_path
        assert clone(model).set_params(checkpoint=None).get_params()["checkpoint_every"] == 5.0
        assert getattr(ours, name)().checkpoint is None
    with pytest.raises(ValueError, match="'checkpoint' must be the path"):
        ours.Lasso(checkpoint=3).fit(X, Y)
    with pytest.raises(ValueError, match="The 'checkpoint_every' parameter of Lasso"):
        ours.Lasso(checkpoint=tmp_path, checkpoint_every=-1).fit(X, Y)
    (tmp_path / "file").write_text("")
    with pytest.raises(
        OSError, match=r"'checkpoint' cannot be written: .*Choose another directory"
    ):
        ours.Lasso(checkpoint=tmp_path / "file").fit(X, Y)


def test_other_problems_have_other_files(tmp_path):
    """Data, weights, parameters, starts: each makes another problem, and none of them gets the answer of another."""
    kinds = [
        ({}, X, Y, None),
        ({}, X + 1e-9, Y, None),
        ({}, X.astype(np.float32), Y, None),
        ({}, X, Y + 1e-9, None),
        ({}, X, Y, np.arange(40.0)),
        ({"alpha": 0.2}, X, Y, None),
        ({"fit_intercept": False}, X, Y, None),
        ({"tol": 1e-5}, X, Y, None),
        ({"eta": 0.1}, X, Y, None),
    ]
    for _ in range(2):
        for count, (options, A, b, weight) in enumerate(kinds, start=1):
            model = ours.Lasso(alpha=0.1).set_params(**options)
            found = clone(model).set_params(checkpoint=tmp_path).fit(A, b, weight)
            assert_same(found, model.fit(A, b, weight))
            assert len(list(tmp_path.iterdir())) >= count
    assert len(list(tmp_path.iterdir())) == count


@pytest.mark.parametrize("kind", ["path", "PathCV", "GridSearchCV"])
def test_searches(tmp_path, kind):
    alphas = [0.1, 0.01]

    def search(checkpoint=None):
        model = ours.LinearRegressor(
            "squared", Crashing(1.0), checkpoint=checkpoint, checkpoint_every=0.0
        )
        if kind == "path":
            return model.path(X, Y, alphas, return_intercepts=True)
        if kind == "PathCV":
            found = ours.PathCV(model, alphas=alphas, cv=2).fit(X, Y)
            return found.score_path_, found.alpha_, found.coef_, found.n_iter_
        found = GridSearchCV(model, {"alpha": alphas}, cv=2, error_score="raise").fit(X, Y)
        return found.cv_results_["mean_test_score"], found.best_estimator_.coef_

    whole = search()
    calls, Crashing.left = -Crashing.left, 0
    for k in (5, 3):
        Crashing.left = k
        with pytest.raises(Crash):
            search(tmp_path)
    Crashing.left = 0
    for one, other in zip(search(tmp_path), whole, strict=True):
        np.testing.assert_array_equal(one, other)
    Crashing.left = 0
    search(
        tmp_path
    )  # No iteration is left. One prox per fit decides whether all coefficients are zero.
    assert -Crashing.left < 0.2 * calls
