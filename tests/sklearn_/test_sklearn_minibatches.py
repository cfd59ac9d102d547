"""Estimators with minibatches: `batch_size`, and `partial_fit` on streams."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from adagrad_diff import sklearn as ours
from adagrad_diff.sklearn import (
    LinearClassifier,
    LinearRegressor,
    LogisticRegression,
    PoissonRegressor,
)

ETA, FORGET = 0.1, 2 / 3  # the default step size, and the exponent of the weight of a new batch
LINEAR = [
    getattr(ours, name)
    for name in ours.__all__
    if hasattr(getattr(ours, name), "partial_fit") and name not in ("PathCV", "KernelSVC")
]


def classes(samples=1500, features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, features))
    return X, np.where(X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(samples) > 0, "yes", "no")


def numbers(samples=1500, seed=0):
    """Raw units, far from zero."""
    rng = np.random.default_rng(seed)
    size = np.geomspace(1e-3, 1e4, 5)
    X = (rng.standard_normal((samples, 5)) + 3) * size
    return X, X @ (1 / size) + 50 + rng.standard_normal(samples)


def in_pieces(model, X, y, piece=200, **options):
    for lo in range(0, len(y), piece):
        model.partial_fit(X[lo : lo + piece], y[lo : lo + piece], **options)
    return model


def test_every_linear_estimator_has_both():
    assert {kind.__name__ for kind in LINEAR} >= {
        "LinearRegressor",
        "LADRegressor",
        "Lasso",
        "SparseSVC",
        "LogisticRegression",
    }
    for kind in LINEAR:
        assert "batch_size" in kind().get_params()


# ------------------------------------------------------------ batch_size


@pytest.mark.parametrize("size", [0, -1, 2.5, "32"])
def test_batch_size_must_be_a_count(size):
    with pytest.raises(
        ValueError, match="The 'batch_size' parameter of LogisticRegression must be an integer >= 1"
    ):
        LogisticRegression(batch_size=size).fit(*classes(50))


def test_batch_size_in_a_search():
    search = GridSearchCV(LogisticRegression(alpha=0.01), {"batch_size": [None, 20]}, cv=2).fit(
        *classes(300)
    )
    assert search.best_score_ > 0.8


# ------------------------------------------------------------ partial_fit


def naive(X, b, lam, size, piece):
    """The formulas, for the logistic loss with L1, without an intercept, on samples that are in pieces of equal size."""
    x = x_prev = v = np.zeros(X.shape[1])
    total, n, square, seen = np.zeros(X.shape[1]), 0, np.zeros(X.shape[1]), 0

    def gradient(rows, at):
        return -(rows[0].T @ (rows[1] / (1 + np.exp(rows[1] * (rows[0] @ at))))) / len(rows[1])

    for lo in range(0, len(b), piece):
        here, target = X[lo : lo + piece], b[lo : lo + piece]
        seen += piece
        square += piece / seen * ((here**2).mean(axis=0) - square)
        order = np.random.default_rng(n).permutation(piece)
        for k in range(piece // size):
            rows = order[k * size : (k + 1) * size]
            batch, n = (here[rows], target[rows]), n + 1
            v_new = gradient(batch, x) + (1 - n**-FORGET) * (v - gradient(batch, x_prev))
            total = total + (v_new - v) ** 2
            step = ETA / np.sqrt(square) / (1e-8 + np.sqrt(total))
            z = x - step * v_new
            x, x_prev, v = np.sign(z) * np.maximum(np.abs(z) - step * lam, 0), x, v_new
    return x


def test_it_is_the_formula():
    X, y = classes(600)
    model = LogisticRegression(penalty="l1", alpha=0.01, fit_intercept=False, batch_size=20)
    in_pieces(model, X, y, classes=["no", "yes"])
    np.testing.assert_allclose(
        model.coef_[0],
        naive(X, np.where(y == "yes", 1.0, -1.0), 0.01, 20, 200),
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.parametrize("kind", LINEAR)
def test_a_stream_comes_near_the_fit(kind):
    if kind is PoissonRegressor:
        X, _ = classes()
        y = np.random.default_rng(1).poisson(np.exp(0.5 * X[:, 0])).astype(float)
    else:
        X, y = classes() if hasattr(kind, "decision_function") else numbers()
    model, options = (
        kind(),
        {"classes": ["no", "yes"]} if hasattr(kind, "decision_function") else {},
    )
    model.set_params(alpha=1e-4)
    in_pieces(model, X, y, **options)
    assert model.stop_reason_ == "partial_fit"
    assert not model.converged_
    assert model.n_samples_seen_ == 1500
    fitted = clone(model).set_params(tol=1e-2).fit(X, y)
    assert model.score(X, y) > fitted.score(X, y) - 0.1


@pytest.mark.parametrize(
    "make", [np.asarray, sparse.csr_array, sparse.csc_array, lambda X: X.astype(np.float32)]
)
def test_any_data_in_memory(make):
    X, y = classes(400)
    model = LogisticRegression(alpha=0.01).partial_fit(make(X), y, classes=["no", "yes"])
    plain = LogisticRegression(alpha=0.01).partial_fit(X, y, classes=["no", "yes"])
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-4, atol=1e-5)


def test_single_samples_and_missing_classes():
    X, y = classes(300)
    model = LogisticRegression(alpha=1e-3)
    for row, label in zip(X, y, strict=True):
        model.partial_fit(row[None], [label], classes=["no", "yes"])
    assert model.score(X, y) > 0.8
    three = LinearClassifier("multinomial").partial_fit(
        X, np.argmax(X[:, :3], axis=1), classes=[0, 1, 2]
    )
    assert three.coef_.shape == (3, 6)
    one_by_one = LinearClassifier("hinge").partial_fit(
        X, np.argmax(X[:, :3], axis=1), classes=[0, 1, 2, 3]
    )
    assert one_by_one.predict(X).max() < 3


def test_it_goes_on_after_a_fit_and_a_fit_begins_anew():
    X, y = classes(1000)
    model = LogisticRegression(alpha=1e-3).fit(X, y)
    exact = model.coef_.copy()
    model.partial_fit(X, y)
    assert 0 < np.abs(model.coef_ - exact).max() < 0.5
    again = model.fit(X, y)
    np.testing.assert_array_equal(again.coef_, exact)
    assert not hasattr(again, "n_samples_seen_")


@pytest.mark.parametrize("kind", [LogisticRegression, LinearRegressor])
def test_weights_count_as_copies_do(kind):
    X, y = classes(64) if kind is LogisticRegression else numbers(64)
    options = {"classes": ["no", "yes"]} if kind is LogisticRegression else {}
    weight = np.where(np.arange(64) % 2, 2.0, 1.0)
    rows = np.repeat(np.arange(64), weight.astype(int))
    repeated = kind(batch_size=128, alpha=0.01).partial_fit(X[rows], y[rows], **options)
    weighted = kind(batch_size=128, alpha=0.01).partial_fit(X, y, sample_weight=weight, **options)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-10)


class Impatient:
    """A penalty whose prox is interrupted on request."""

    interrupted = False

    def value(self, x):
        return 0.0

    def prox(self, z, step):
        if Impatient.interrupted:
            raise KeyboardInterrupt
        return z


def test_a_call_that_fails_changes_nothing():
    X, y = classes(200)
    model, twin = (
        LinearClassifier("logistic", Impatient()).partial_fit(X, y, classes=["no", "yes"])
        for _ in range(2)
    )
    before = model.coef_.copy()
    Impatient.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    Impatient.interrupted = False
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((3, 6), np.nan), y[:3])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)
    np.testing.assert_array_equal(model.coef_, before)
    assert model.n_samples_seen_ == 200
    np.testing.assert_array_equal(model.partial_fit(X, y).coef_, twin.partial_fit(X, y).coef_)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda m, X, y: m.partial_fit(X, y),
            "The first call of partial_fit needs 'classes'",
        ),
        (lambda m, X, y: m.partial_fit(X, y, classes=["no"]), "must be at least 2"),
        (
            lambda m, X, y: m.partial_fit(X, y, classes=["no", "maybe"]),
            "y has labels .*yes.* missing in 'classes'",
        ),
        (
            lambda m, X, y: m.partial_fit(X, y, ["no", "yes"]).partial_fit(X, y, [0, 1]),
            "in the first call of partial_fit",
        ),
        (
            lambda m, X, y: m.set_params(class_weight="balanced").partial_fit(X, y, ["no", "yes"]),
            "give a dict",
        ),
    ],
)
def test_sentences(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(LogisticRegression(), *classes(50))
