"""Fits that crash and are called again end with the bits of a fit in one go; clones, folds and paths share a directory."""

import os

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from adagrad_diff import sklearn as ours
from adagrad_diff.sklearn import _solve
from adagrad_diff.solve import tries
from looping import looped

pytestmark = pytest.mark.peer
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
Y = X[:, 0] - 2 * X[:, 3] + RNG.standard_t(2, 40)
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 1])).astype(float)
CLASSES = np.digitize(Y, [-1.0, 1.0])
FITTED = ("coef_", "intercept_", "dual_coef_", "support_", "n_iter_", "objective_", "dual_gap_", "stop_reason_")


class Crash(Exception):
    """The process ends here."""


@pytest.fixture(autouse=True)
def disk(monkeypatch):
    """None of these files has to survive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture
def crashing(monkeypatch):
    """Fits crash in the k-th iteration of all their runs together; 0: they do not. No problem is solved before the first."""
    monkeypatch.setattr(tries, "AT_ONCE", -1.0)
    monkeypatch.setattr(tries, "INSTEAD", -1)
    minimize, left = _solve.minimize, [0]

    def watched(*args, callback=None, **options):
        def count(now):
            left[0] -= 1
            if left[0] == 0:
                raise Crash

        return minimize(*args, callback=count, **options)

    monkeypatch.setattr(_solve, "minimize", watched)
    return lambda k: left.__setitem__(0, k)


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
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_every_estimator_is_here():
    kinds = {name for name in ours.__all__ if hasattr(getattr(ours, name), "fit")} - {"PathCV"}
    assert kinds == MODELS.keys(), "add the new estimator to MODELS"


@looped("name", MODELS)
def test_crashes(tmp_path, crashing, name):
    options, y = MODELS[name]
    crashing(0)
    model = getattr(ours, name)(**options)
    whole = clone(model).fit(X, y)
    directory = tmp_path / name / "deep"
    for k in (3, 20):
        crashing(k)
        try:
            clone(model).set_params(checkpoint=directory, checkpoint_every=0.0).fit(X, y)
        except Crash:
            continue
        break  # it was through before
    crashing(0)
    rest = clone(model).set_params(checkpoint=str(directory)).fit(X, y)
    assert_same(rest, whole)
    files = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert all(len(file) == 28 and file.endswith(".npz") for file in files)
    crashing(1)
    assert_same(clone(rest).fit(X, y), whole)  # no iteration more
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == files


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
    with pytest.raises(OSError, match=r"'checkpoint' cannot be written: .*Choose another directory"):
        ours.Lasso(checkpoint=tmp_path / "file").fit(X, Y)


def test_other_problems_have_other_files(tmp_path):
    """Data, weights, parameters, starts: each makes another problem, and none of them gets the answer of another."""
    kinds = [
        ({}, X, Y, None),
        ({}, X + 1e-9, Y, None),
        ({}, X.astype(np.float32), Y, None),
        ({}, sparse.csr_array(X), Y, None),
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


def test_more_iterations_go_on(tmp_path):
    model = ours.LADRegressor(alpha=0.01, eta=0.05, max_iter=50, tol=1e-9)
    with pytest.warns(match="max_iter=50"):
        model.set_params(checkpoint=tmp_path).fit(X, Y)
    with pytest.warns(match="max_iter=90"):
        more = clone(model).set_params(max_iter=90).fit(X, Y)
    with pytest.warns(match="max_iter=90"):
        assert_same(more, clone(model).set_params(max_iter=90, checkpoint=None).fit(X, Y))
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", ["path", "PathCV", "GridSearchCV"])
def test_searches(tmp_path, crashing, kind):
    def search(checkpoint=None):
        model = ours.LADRegressor(checkpoint=checkpoint, checkpoint_every=0.0)
        if kind == "path":
            return model.path(X, Y, n_alphas=4, return_intercepts=True)
        if kind == "PathCV":
            found = ours.PathCV(model, n_alphas=3, cv=2).fit(X, Y)
            return found.score_path_, found.alpha_, found.coef_, found.n_iter_
        found = GridSearchCV(model, {"alpha": [0.1, 0.01]}, cv=2, error_score="raise").fit(X, Y)
        return found.cv_results_["mean_test_score"], found.best_estimator_.coef_

    whole = search()
    for k in (5, 3):
        crashing(k)
        with pytest.raises(Crash):
            search(tmp_path)
    crashing(0)
    for one, other in zip(search(tmp_path), whole, strict=True):
        np.testing.assert_array_equal(one, other)
    crashing(1)
    search(tmp_path)  # everything is there
