"""What estimators say about themselves is true: ties, large means, tiny data, weights of zero; and where they start."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

pytest.importorskip("sklearn")

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
    cost = np.concatenate(
        [np.full(2 * features, alpha), [0.0, 0.0], tau * weight, (1 - tau) * weight]
    )
    answer = linprog(cost, A_eq=A, b_eq=y, bounds=(0, None), method="highs")
    assert answer.status == 0
    return answer.fun


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    samples=st.sampled_from([1, 2, 4, 9]),
    alpha=st.sampled_from([0.02, 0.5, 5.0]),
    tau=st.sampled_from([0.25, 0.5]),
)
def test_integer_targets_against_highs(seed, samples, alpha, tau):
    rng = np.random.default_rng(seed)
    X, y = (
        rng.integers(-9, 10, (samples, 2)).astype(float),
        rng.integers(0, 3, samples).astype(float),
    )
    weight = np.maximum(rng.integers(0, 3, samples), np.arange(samples) == 0).astype(float)
    model = fit(
        door.QuantileRegressor(quantile=tau, alpha=alpha, max_iter=1000), X, y, sample_weight=weight
    )
    best = highs(X, y, weight / weight.sum(), alpha, tau)
    assert model.objective_ >= best - 1e-9
    assert model.objective_ - model.dual_gap_ <= best + 1e-9
