"""What estimators say about themselves is true: ties, large means, tiny data, weights of zero; and where they start."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

pytest.importorskip("sklearn")

from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from adagrad_diff import sklearn as door

pytestmark = pytest.mark.peer


def fit(model, *data, **options):
    """Whether it has converged is not the question here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **options)


def highs(X, y, weight, alpha, tau):
    """The optimum of quantile regression with L1 and an intercept, by linear programming."""
    samples, features = X.shape
    one = np.ones((samples, 1))
    A = np.hstack([X, -X, one, -one, np.eye(samples), -np.eye(samples)])
    cost = np.concatenate([np.full(2 * features, alpha), [0.0, 0.0], tau * weight, (1 - tau) * weight])
    answer = linprog(cost, A_eq=A, b_eq=y, bounds=(0, None), method="highs")
    assert answer.status == 0
    return answer.fun


def test_a_strong_penalty_and_ties():
    model = door.LADRegressor(alpha=10.0).fit([[0.0], [1.0], [2.0], [5.0]], [0, 1, 1, 2])
    assert model.objective_ == pytest.approx(0.5)
    assert model.intercept_ == 1.0
    assert 0.0 <= model.dual_gap_ <= 1e-4 * 0.5
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = door.QuantileRegressor().fit(X, y)
    assert model.objective_ == pytest.approx(highs(X, y, np.full(len(y), 1 / len(y)), 1.0, 0.5), rel=1e-4)


@settings(max_examples=60, deadline=None)
@given(
    kinks=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 1, 2])), min_size=1, max_size=9),
    tau=st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.9]),
    shift=st.sampled_from([0.0, 0.1, 1e6]),
    dtype=st.sampled_from([np.float64, np.float32]),
)
@example(kinks=[(0, 1), (1, 1), (1, 1), (2, 1)], tau=0.5, shift=0.0, dtype=np.float64)
def test_the_best_intercept_by_brute_force(kinks, tau, shift, dtype):
    """With a penalty that is strong enough, it is all there is: the best of all kinks, and of the middles between them."""
    y, weight = (np.array(column, dtype=float) for column in zip(*kinks, strict=True))
    y, weight = (y + shift).astype(dtype), weight if weight.any() else weight + 1.0
    model = fit(
        door.QuantileRegressor(quantile=tau, alpha=1e3), np.arange(len(y), dtype=dtype)[:, None], y, sample_weight=weight
    )
    t = y.astype(float)
    values = [
        np.average(np.maximum(tau * (t - c), (tau - 1) * (t - c)), weights=weight) for c in [*t, *((t + t[:, None]) / 2).flat]
    ]
    scale = float(np.finfo(dtype).eps) * (1.0 + abs(shift))
    assert model.objective_ <= min(values) * (1 + 1e-6) + 4 * scale
    assert model.objective_ - model.dual_gap_ <= min(values) * (1 + 1e-6)
    assert model.n_iter_ == 1 or shift > 1.0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    samples=st.sampled_from([1, 2, 4, 9]),
    alpha=st.sampled_from([0.02, 0.5, 5.0]),
    tau=st.sampled_from([0.25, 0.5]),
)
def test_integer_targets_against_highs(seed, samples, alpha, tau):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-9, 10, (samples, 2)).astype(float), rng.integers(0, 3, samples).astype(float)
    weight = np.maximum(rng.integers(0, 3, samples), np.arange(samples) == 0).astype(float)
    model = fit(door.QuantileRegressor(quantile=tau, alpha=alpha, max_iter=1000), X, y, sample_weight=weight)
    best = highs(X, y, weight / weight.sum(), alpha, tau)
    assert model.objective_ >= best - 1e-9
    assert model.objective_ - model.dual_gap_ <= best + 1e-9


REGRESSORS = {
    "Lasso": {"alpha": 0.01},
    "LinearRegressor": {"alpha": 0.01},
    "ElasticNet": {"alpha": 0.01},
    "GroupLasso": {"alpha": 0.01},
    "LADRegressor": {"alpha": 0.01},
    "HuberRegressor": {},
}


@pytest.mark.parametrize(("offset", "dtype"), [(2000.0, np.float32), (1e5, np.float64), (1e7, np.float64)])
@pytest.mark.parametrize("name", REGRESSORS)
def test_targets_with_a_large_mean(name, offset, dtype):
    """Targets that are large do not make the answer worse, nor more certain."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 4)).astype(dtype)
    y = (offset + X[:, 0] + 0.1 * rng.standard_normal(100)).astype(dtype)
    model = fit(getattr(door, name)(**REGRESSORS[name]), X, y)
    centered = fit(getattr(door, name)(tol=1e-6, **REGRESSORS[name]), X.astype(float), y.astype(float) - offset)
    best = centered.objective_ - centered.dual_gap_
    t = y.astype(float) - offset - X.astype(float) @ model.coef_.astype(float) - (model.intercept_ - offset)
    moved = y.astype(float) - offset - X.astype(float) @ centered.coef_ - centered.intercept_
    loss = {
        "LADRegressor": np.abs,
        "HuberRegressor": lambda t: np.where(np.abs(t) < 1.35, t**2 / 2, 1.35 * np.abs(t) - 1.35**2 / 2),
    }
    loss = loss.get(name, lambda t: t**2 / 2)
    # The penalty of the answer is what its objective has beside the loss.
    penalties = [m.objective_ - loss(r).mean() for m, r in ((model, t), (centered, moved))]
    assert penalties[0] == pytest.approx(penalties[1], rel=0.2, abs=1e-3)
    assert model.objective_ - model.dual_gap_ <= centered.objective_ * (1 + 1e-6)
    assert model.dual_gap_ >= (loss(t).mean() + penalties[1] - centered.objective_) * (1 - 1e-3) - abs(
        penalties[0] - penalties[1]
    )
    assert model.score(X, y) > 0.95
    assert model.objective_ <= (best + centered.dual_gap_) * 1.01 + (1e-4 if dtype == np.float32 else 0.0)


def test_huber_in_single_precision():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)).astype(np.float32)
    y = X[:, 0] + rng.standard_t(2, 80).astype(np.float32)
    model = door.HuberRegressor().fit(X, y)
    assert model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.parametrize("name", ["LADRegressor", "Lasso", "HuberRegressor", "QuantileRegressor", "LinearRegressor"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e9])
@pytest.mark.parametrize("samples", [1, 7])
def test_constant_targets(name, value, samples):
    X = np.random.default_rng(0).standard_normal((samples, 2))
    model = fit(getattr(door, name)(alpha=0.1), X, np.full(samples, value))
    assert model.intercept_ == value
    assert not model.coef_.any()
    assert model.objective_ == model.dual_gap_ == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_hard_problems_are_not_called_solved(seed):
    """More features than samples and a weak penalty; three samples and a large C."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 800))
    y = X[:, 0] + 0.1 * rng.standard_normal(40)
    model = fit(door.LADRegressor(alpha=0.001, max_iter=2000), X, y)
    best = 2 * highs(X, y, np.full(40, 1 / 40), 0.0005, 0.5)
    assert model.objective_ - model.dual_gap_ <= best * (1 + 1e-9)
    machine = fit(door.LinearSVC(C=10), [[0.0], [1.0], [3.0 + seed]], [0, 1, 1])
    assert machine.objective_ - machine.dual_gap_ <= 1 / 15 * (1 + 1e-9)  # coefficients 2 and -1: no loss, w^2 / 2 / (3 C)
    assert machine.objective_ >= 1 / 15 * (1 - 1e-9)
