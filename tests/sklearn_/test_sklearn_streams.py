"""`partial_fit` where streams are awkward: single samples, far targets, kinks, means that move, settings that change."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from adagrad_diff import Nuclear
from adagrad_diff.sklearn import (
    LADRegressor,
    LinearClassifier,
    LinearRegressor,
    LogisticRegression,
)

ETA, FORGET = 0.1, 2 / 3  # the default step size, and the exponent of the weight of a new batch
WEIGHTS = np.array([1.0, -1.0, 0.0, 0.0, 0.5])


def numbers(samples=300, far=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, 5))
    return X, X @ WEIGHTS + far + 0.3 * rng.standard_normal(samples)


def classes(samples=300, seed=0):
    X, y = numbers(samples, seed=seed)
    return X, np.where(y > 0, "yes", "no")


def in_pieces(model, X, y, piece, **options):
    for lo in range(0, len(y), piece):
        model.partial_fit(X[lo : lo + piece], y[lo : lo + piece], **options)
    return model


# ------------------------------------------------------------ how large a step is


def test_targets_that_are_all_the_same():
    X = numbers(50)[0]
    model = in_pieces(LinearRegressor(), X, np.full(50, 3.0), 10)
    np.testing.assert_allclose(model.predict(X), 3.0)
    assert model.n_samples_seen_ == 50
    np.testing.assert_array_equal(in_pieces(LinearRegressor(), X, np.zeros(50), 10).coef_, 0.0)


def test_one_sample_after_a_fit_does_not_undo_it():
    X, y = numbers(far=1e6)
    model = LinearRegressor(alpha=1e-4).fit(X, y)
    model.partial_fit(X[:1], y[:1])
    assert model.score(X, y) > 0.8


def test_after_a_fit_C_is_about_all_samples():
    """C = 1 / (sum of weights * alpha), and the samples of the fit are among them."""
    X, y = classes()
    model = LogisticRegression(C=1.0).fit(X, y).partial_fit(X[:2], y[:2])
    same = (
        LogisticRegression(alpha=1 / 300, tol=1e-4)
        .fit(X, y)
        .set_params(alpha=1 / 302)
        .partial_fit(X[:2], y[:2])
    )
    np.testing.assert_array_equal(model.coef_, same.coef_)
    model.partial_fit(X[2:5], y[2:5])
    np.testing.assert_array_equal(
        model.coef_, same.set_params(alpha=1 / 305).partial_fit(X[2:5], y[2:5]).coef_
    )
    anew = (
        LogisticRegression(C=1.0)
        .partial_fit(X, y, classes=["no", "yes"])
        .fit(X, y)
        .partial_fit(X[:2], y[:2])
    )
    np.testing.assert_array_equal(
        anew.coef_, LogisticRegression(C=1.0).fit(X, y).partial_fit(X[:2], y[:2]).coef_
    )


# ------------------------------------------------------------ means that move


def naive(X, b, size, piece):
    """The formulas for half the square, with an intercept and no penalty; x is about columns that are centered."""
    w, q, mean, square, seen, n = (
        np.zeros(X.shape[1]),
        b[:piece].mean(),
        np.zeros(X.shape[1]),
        0.0,
        0,
        0,
    )
    before, v, v0, total, total0 = (w, q), np.zeros_like(w), 0.0, np.zeros_like(w), 0.0

    def gradient(A, y, at):
        r = (A @ at[0] + at[1] - y) / len(y)
        return (A - mean).T @ r, r.sum()

    for lo in range(0, len(b), piece):
        here, target, seen = X[lo : lo + piece], b[lo : lo + piece], seen + piece
        mean, square = (
            old + piece / seen * (new - old)
            for old, new in ((mean, here.mean(0)), (square, (here**2).mean(0)))
        )
        scale, eta = 1 / np.sqrt(square - mean**2), ETA * np.std(b[:seen])
        order = np.random.default_rng(n).permutation(piece)
        for k in range(piece // size):
            rows, n = order[k * size : (k + 1) * size], n + 1
            (g, g0), (h, h0) = (gradient(here[rows], target[rows], at) for at in ((w, q), before))
            keep = 1 - n**-FORGET
            new, new0 = g + keep * (v - h), g0 + keep * (v0 - h0)
            total, total0 = total + (new - v) ** 2, total0 + (new0 - v0) ** 2
            before, (v, v0), centered = (w, q), (new, new0), q + mean @ w
            w = w - eta * scale / (1e-8 + np.sqrt(total)) * v
            q = centered - eta / (1e-8 + np.sqrt(total0)) * v0 - mean @ w
    return w, q


def test_columns_whose_means_move():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5)) + np.linspace(0, 20, 400)[:, None] * [1, 0, -1, 2, 0]
    y = X @ WEIGHTS + 3 + 0.1 * rng.standard_normal(400)
    model = in_pieces(LinearRegressor(alpha=0.0, batch_size=10), X, y, 40)
    w, q = naive(X, y, 10, 40)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-7, atol=1e-9)
    assert model.intercept_ == pytest.approx(q, rel=1e-7)


# ------------------------------------------------------------ kinks


@pytest.mark.parametrize(("piece", "seed"), [(1, 0), (10, 1), (200, 2)])
def test_losses_with_kinks_come_to_rest(piece, seed):
    """Directions of STORM diverge there: ten times the samples were a larger error."""
    X, y = numbers(1000, seed=seed)
    X, y = X + 5.0, y + 5.0 * WEIGHTS.sum()
    regressor = in_pieces(LADRegressor(alpha=1e-5), X, y, piece)
    assert np.mean((regressor.predict(X) - y) ** 2) < 0.12
    labels = np.where(y > np.median(y), 1, 0)
    assert (
        in_pieces(LinearClassifier("hinge", alpha=1e-3), X, labels, piece, classes=[0, 1]).score(
            X, labels
        )
        > 0.85
    )


# ------------------------------------------------------------ settings that change on the way


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        (LogisticRegression, {}, {"fit_intercept": False}),
        (LogisticRegression, {"fit_intercept": False}, {"fit_intercept": True}),
        (LinearClassifier, {"loss": "logistic"}, {"loss": "hinge"}),
        (
            LinearClassifier,
            {"loss": "logistic", "penalty": "l1"},
            {"penalty": Nuclear(1.0, (5, 1))},
        ),
        (
            LinearClassifier,
            {"loss": "logistic", "penalty": Nuclear(1.0, (5, 1))},
            {"penalty": "l1"},
        ),
    ],
)
def test_a_stream_of_another_problem_begins_anew_at_the_coefficients(kind, before, after):
    """As after a fit."""
    X, y = classes()
    model = kind(**before, alpha=0.01).partial_fit(X, y, classes=["no", "yes"])
    other = clone(model).set_params(**after)
    other.coef_, other.intercept_, other.classes_, other.n_features_in_ = (
        model.coef_,
        model.intercept_,
        model.classes_,
        5,
    )
    model.set_params(**after).partial_fit(X, y)
    other.partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.score(X, y) > 0.8
    assert model.n_samples_seen_ == 600


def test_from_one_against_the_rest_to_all_classes_at_once():
    X, _ = classes()
    y = np.argmax(X[:, :3], axis=1)
    model = LinearClassifier("logistic", alpha=1e-3).partial_fit(X, y, classes=[0, 1, 2])
    assert model.set_params(loss="multinomial").partial_fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize(
    "change", [{"alpha": 0.02}, {"eta": 0.05}, {"batch_size": 7}, {"penalty": "l1"}], ids=str
)
def test_other_strengths_and_step_sizes_continue_the_stream(change):
    """A stream that started again would make other steps."""
    X, y = classes()
    model = LinearClassifier("logistic", alpha=0.01).partial_fit(X, y, classes=["no", "yes"])
    other = clone(model).set_params(**change)
    other.coef_, other.intercept_, other.classes_, other.n_features_in_ = (
        model.coef_,
        model.intercept_,
        model.classes_,
        5,
    )
    model.set_params(**change).partial_fit(X, y)
    assert not np.allclose(model.coef_, other.partial_fit(X, y).coef_)


def test_a_piece_without_weight_is_refused():
    X, y = classes(20)
    model = LogisticRegression(class_weight={"no": 0.0}).partial_fit(X, y, classes=["no", "yes"])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="at least 1 classes with a positive weight"):
        model.partial_fit(X[y == "no"], y[y == "no"])
    np.testing.assert_array_equal(model.coef_, before)


def test_a_strange_class_is_named_as_it_was_given():
    X, y = classes(20)
    with pytest.raises(
        ValueError,
        match=r"y has labels \['yes'\] that are missing in 'classes' of partial_fit: \['no' 'non'\]",
    ):
        LogisticRegression().partial_fit(X, y, classes=["no", "non"])
    with pytest.raises(ValueError, match=r"y has labels \[2\] that"):
        LogisticRegression().partial_fit(X, np.full(20, 2), classes=[0, 1])
