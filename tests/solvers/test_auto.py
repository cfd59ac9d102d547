"""eta="auto": as good as a tuned eta, in any units, and honest about how a run ended."""

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    AdaGradDiff,
    Box,
    GroupL2,
    Logistic,
    Multinomial,
    Nuclear,
    Poisson,
    Quadratic,
    Quantile,
    Simplex,
    Squared,
    Status,
    minimize,
)
from adagrad_diff.penalties import Zero
from loss_zoo import problem


def data(samples=80, features=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((samples, features)) + 0.5
    return A, A @ rng.standard_normal(features) + rng.standard_t(3, samples)


# ------------------------------------------------------------ as good as a tuned eta


@pytest.mark.parametrize(
    ("kind", "intercept"),
    [(LAD, True), (Logistic, False), (Poisson, True), (Multinomial, False)],
    ids=str,
)
def test_against_a_grid(kind, intercept):
    """The gap after 300 iterations is at most ten times that of the best of 15 constant etas, or tiny."""
    loss, _ = problem(kind, samples=60, intercept=intercept)
    penalty = L1(0.02)
    grid = minimize(
        loss,
        penalty=penalty,
        eta=np.geomspace(1e-4, 1e2, 15),
        max_iter=300,
        history=0,
        on_failure="ignore",
    )
    auto = minimize(loss, penalty=penalty, max_iter=300, history=0)
    best = min(
        minimize(
            loss, penalty=penalty, max_iter=3000, tol=1e-12, history=0, on_failure="ignore"
        ).fun,
        auto.fun,
    )
    assert auto.fun - best <= max(10 * (np.nanmin(grid.fun_best) - best), 1e-5 * abs(best))


@pytest.mark.parametrize(("kind", "factors"), [(LAD, 1e6), (Squared, 1e-6), (Logistic, 1e6)])
def test_units_of_columns_do_not_matter(kind, factors):
    """Column i in units of s_i: the same problem in x_i / s_i, and so the same run."""
    A, b = data()
    b = np.sign(b) if kind is Logistic else b
    s = np.geomspace(1.0, factors, A.shape[1])
    plain = minimize(kind(A, b, intercept=True), penalty=L1(0.05), max_iter=300)
    scaled = minimize(kind(A * s, b, intercept=True), penalty=L1(0.05 * s), max_iter=300)
    assert scaled.fun == pytest.approx(plain.fun, rel=1e-4)
    np.testing.assert_allclose(scaled.x[:-1] * s, plain.x[:-1], atol=2e-2)


def test_units_of_targets_do_not_matter():
    A, b = data()
    small, large = (
        minimize(LAD(A, c * b), penalty=L1(0.05), max_iter=300).fun / c for c in (1e-6, 1e6)
    )
    assert small == pytest.approx(large, rel=1e-5)


def test_shifted_columns_do_not_matter():
    A, b = data()
    far = A + np.array([0.0, 1e3, -1e3, 10.0, 0.0, 1e2])
    near, shifted = (
        minimize(LAD(X, b, intercept=True), penalty=L1(0.05), max_iter=400) for X in (A, far)
    )
    assert shifted.fun == pytest.approx(near.fun, rel=1e-4)


def test_sparse_data_stay_sparse_and_constant_columns_are_harmless():
    A, b = data()
    A[:, 2], A[:, 4] = 7.0, 0.0
    dense = minimize(LAD(A, b, intercept=True), penalty=L1(0.05), max_iter=300)
    thin = minimize(LAD(sparse.csr_array(A), b, intercept=True), penalty=L1(0.05), max_iter=300)
    assert thin.fun == pytest.approx(dense.fun, rel=1e-6)
    assert dense.x[4] == 0
    assert abs(dense.x[2]) < 1e-6


# ------------------------------------------------------------ every kind of problem


def test_functions():
    result = minimize(
        lambda x: (0.5 * x @ x - x.sum(), x - 1), np.zeros(3), max_iter=3000, tol=1e-8
    )
    np.testing.assert_allclose(result.x, 1.0, atol=1e-6)
    assert result.success
    assert result.gap == np.inf
    matrix = minimize(lambda x: (0.5 * np.sum((x - 2) ** 2), x - 2), np.zeros((2, 3)), max_iter=300)
    np.testing.assert_allclose(matrix.x, 2.0, atol=1e-5)


@pytest.mark.parametrize(
    "penalty",
    [Zero(), Box(-0.1, 0.3), Simplex(), GroupL2(0.1, [0, 0, 1, 1, 2, 2]), Nuclear(0.1, (2, 3))],
    ids=str,
)
def test_penalties(penalty):
    A, b = data()
    result = minimize(Squared(A, b), penalty=penalty, max_iter=2000, tol=1e-8, on_failure="ignore")
    z = result.x - 1e-3 * Squared(A, b).value_and_grad(result.x)[1]
    np.testing.assert_allclose(
        penalty.prox(z, 1e-3), result.x, atol=1e-5
    )  # a fixed point of a proximal step: optimal


def test_quadratic():
    result = minimize(Quadratic(np.diag([1.0, 1e6]), [1.0, 1e3]), max_iter=500)
    np.testing.assert_allclose(result.x, [1.0, 1e-3], rtol=1e-5)


# ------------------------------------------------------------ how a run ends


def test_certified_stalled_or_out_of_budget():
    A, b = data()
    certified = minimize(LAD(A, b), penalty=L1(0.05), max_iter=5000, tol=1e-3, finish=False)
    assert certified.status == Status.CONVERGED
    assert certified.gap <= 1e-3 * certified.fun
    with pytest.warns(
        RuntimeWarning, match="no certificate shows that it is optimal"
    ):  # no conjugate, no certificate
        stalled = minimize(
            lambda x: (np.abs(A @ x - b).sum(), A.T @ np.sign(A @ x - b)),
            np.zeros(6),
            max_iter=50000,
            tol=1e-3,
        )
    assert stalled.status == Status.STALLED
    assert not stalled.success
    assert stalled.nit < 50000
    assert "three quarters" in stalled.message
    with pytest.warns(RuntimeWarning, match="budget of iterations"):
        short = minimize(LAD(A, b), penalty=L1(0.05), max_iter=20, tol=1e-9, finish=False)
    assert short.status == Status.MAX_ITER
    assert short.nit == 20


def test_budgets_and_callbacks():
    A, b = data()
    seen = []

    def callback(now):
        seen.append((now.nit, now.fun))
        if now.nit == 40:
            raise StopIteration

    result = minimize(LAD(A, b, intercept=True), penalty=L1(0.05), max_iter=100, callback=callback)
    assert result.status == Status.CALLBACK
    assert [n for n, _ in seen] == list(range(1, 41))
    assert np.all(np.diff([f for _, f in seen]) <= 0)
    assert result.fun == pytest.approx(seen[-1][1], rel=1e-12)
    assert minimize(LAD(A, b), max_iter=10**9, max_time=0.01).status == Status.MAX_TIME
    zero = minimize(LAD(A, b), max_iter=0)
    assert zero.nit == 0
    assert not zero.x.any()


def test_the_record():
    A, b = data()
    result = minimize(LAD(A, b), penalty=L1(0.05), max_iter=100, history=10)
    np.testing.assert_array_equal(result.history.iteration, np.arange(10, 101, 10))
    assert result.fun <= result.history.objective.min()
    assert minimize(LAD(A, b), max_iter=5, history=0).history.iteration.size == 0


def test_two_runs_are_the_same_run():
    A, b = data()
    first, second = (
        minimize(Quantile(A, b, intercept=True), penalty=L1(0.05), max_iter=3000, tol=1e-3)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.x, second.x)
    assert first.gap == second.gap
    assert first.nit == second.nit


def test_what_was_found_is_a_start_for_a_constant_eta():
    A, b = data()
    found = minimize(LAD(A, b, intercept=True), penalty=L1(0.05), max_iter=100)
    assert isinstance(found.rule, AdaGradDiff)
    assert found.rule.eta == found.eta
    more = minimize(LAD(A, b, intercept=True), found.x, L1(0.05), rule=found.rule, max_iter=200)
    assert more.fun_best <= found.fun


def test_a_start_at_the_optimum_stays_there():
    A, b = data()
    loss = LAD(A, b)
    best = minimize(loss, penalty=L1(0.05), max_iter=4000, tol=1e-9, on_failure="ignore")
    again = minimize(loss, best.x, L1(0.05), max_iter=100)
    assert again.fun <= best.fun


def test_what_overflows_is_left_behind():
    A, b = data()
    loss = Poisson(A, np.abs(b).round())
    result = minimize(loss, penalty=L1(0.05), max_iter=500)
    assert np.isfinite(result.fun)
    assert result.fun < value(loss, np.zeros(A.shape[1]))


def value(loss, x):
    return loss.value_and_grad(x)[0]


@pytest.mark.parametrize(("kind", "level"), [(Squared, -1e6), (LAD, 3.0), (LAD, 1e-9)])
def test_constant_targets(kind, level):
    """Their spread is nothing but rounding: no measure of a step."""
    A = np.random.default_rng(0).standard_normal((40, 5))
    result = minimize(
        kind(A, np.full(40, level), intercept=True), penalty=L1(0.1), tol=1e-4, max_iter=3000
    )
    assert result.success, result.message
    assert result.x[-1] == pytest.approx(level, rel=1e-2)
