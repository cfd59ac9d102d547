"""Many trajectories in one run: each is what it would be alone, wherever the others stop or fail."""

import re

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Box,
    ConvergenceError,
    ConvergenceWarning,
    Hinge,
    KernelSVMDual,
    Logistic,
    Multinomial,
    Poisson,
    Squared,
    Status,
    load_state,
    minimize,
)
from pairwise import pairwise
from user_losses import Barrier, Bowl, data

A, REAL, LABELS, CLASSES = data()
ETAS = [0.05, 0.3, 1.0, 0.1]
STARTS = np.random.default_rng(2).standard_normal((6, 4))
NAMES = (
    "x",
    "x_avg",
    "x_best",
    "jac",
    "fun",
    "fun_best",
    "subgradient_norm",
    "nit",
    "nfev",
    "status",
    "success",
)


def assert_each_as_if_alone(batch, singles, rtol=1e-11):
    """Every field of column k of the batch is that of the k-th single run."""
    for k, single in enumerate(singles):
        for name in NAMES:
            alone, together = np.asarray(single[name]), batch[name][..., k]
            tolerance = (
                1e-6 if name == "x_best" else rtol
            )  # rounding decides between objectives that are almost the same
            np.testing.assert_allclose(
                together, alone, rtol=tolerance, atol=tolerance, err_msg=f"{name} of {k}"
            )


CASES = {
    "LAD, L1": lambda: (LAD(A, REAL), L1(0.02)),
    "Hinge, box, intercept": lambda: (Hinge(A, LABELS, intercept=True), Box(-0.2, 0.3)),
    "Squared, ridge inside": lambda: (Squared(A, REAL, l2=0.3), None),
    "Logistic, CSR": lambda: (
        Logistic(sparse.csr_array(A * (A > 0)), LABELS),
        L1(np.linspace(0.0, 0.1, 6)),
    ),
    "Logistic, CSC": lambda: (Logistic(sparse.csc_array(A * (A > 0)), LABELS), None),
    "Multinomial, intercept": lambda: (Multinomial(A, CLASSES, intercept=True), L1(0.01)),
    "kernel": lambda: (
        KernelSVMDual(np.exp(-np.abs(np.subtract.outer(REAL, REAL))), LABELS, lam=0.1),
        Box(-0.02, 0.02),
    ),
    "function": lambda: (Bowl(np.linspace(0.5, 3.0, 6)), L1(0.1)),
}


@pairwise(case=CASES, rule=[AdaGradDiff, AdaGrad], blocks=[None, "all"])
def test_columns_are_single_runs(case, rule, blocks):
    loss, penalty = CASES[case]()
    shape = loss.shape if hasattr(loss, "shape") else (6,)
    x0 = np.random.default_rng(3).standard_normal((*shape, 4))
    batch = minimize(loss, x0, penalty, rule(ETAS, blocks=blocks), max_iter=40)
    singles = [
        minimize(loss, x0[..., k], penalty, rule(ETAS[k], blocks=blocks), max_iter=40)
        for k in range(4)
    ]
    assert_each_as_if_alone(batch, singles, rtol=1e-9)
    assert (
        batch.x.shape == batch.x_avg.shape == batch.x_best.shape == batch.jac.shape == (*shape, 4)
    )
    for name in ("fun", "fun_best", "nit", "nfev", "status", "success", "subgradient_norm"):
        assert batch[name].shape == (4,), name
    for name in ("objective", "mean_step", "subgradient_norm"):
        expected = np.column_stack([getattr(single.history, name) for single in singles])
        np.testing.assert_allclose(
            getattr(batch.history, name), expected, rtol=1e-7, atol=1e-12, err_msg=name
        )


def test_one_start_for_every_eta_and_one_eta_for_every_start():
    f = LAD(A, REAL)
    many_etas = minimize(f, STARTS[:, 0], eta=ETAS, max_iter=20)
    assert np.array_equal(
        many_etas.x, minimize(f, np.tile(STARTS[:, :1], 4), eta=ETAS, max_iter=20).x
    )
    many_starts = minimize(f, STARTS, eta=0.3, max_iter=20)
    assert np.array_equal(many_starts.x, minimize(f, STARTS, eta=[0.3] * 4, max_iter=20).x)
    assert minimize(f, eta=ETAS, max_iter=20).x.shape == (6, 4)
    fortran = minimize(f, np.asfortranarray(STARTS), eta=0.3, max_iter=20)
    assert np.array_equal(fortran.x, many_starts.x)


def test_a_single_trajectory_may_still_have_the_axis():
    batch = minimize(LAD(A, REAL), STARTS[:, :1], eta=0.3, max_iter=20)
    assert batch.fun.shape == batch.status.shape == (1,)
    assert_each_as_if_alone(batch, [minimize(LAD(A, REAL), STARTS[:, 0], eta=0.3, max_iter=20)])


def test_a_function_of_a_matrix_with_one_value_is_not_batched():
    def f(X):
        return 0.5 * np.sum((X - 1.0) ** 2), X - 1.0

    result = minimize(f, np.zeros((2, 3)), eta=0.5, max_iter=200)
    assert type(result.status) is int
    np.testing.assert_allclose(result.x, np.ones((2, 3)), rtol=1e-6)


@pytest.mark.parametrize(
    "eta", [ETAS, lambda n: 1.0 / np.sqrt(n)], ids=["one eta each", "callable eta"]
)
def test_trajectories_stop_at_their_own_n(eta):
    f, run = (
        Logistic(A, LABELS, l2=0.2),
        {"penalty": L1(0.01), "tol": 1e-4, "max_iter": 150, "on_failure": "ignore"},
    )
    batch = minimize(f, STARTS, eta=eta, **run)
    singles = [
        minimize(f, STARTS[:, k], eta=eta if callable(eta) else eta[k], **run) for k in range(4)
    ]
    assert len(set(batch.nit)) >= 3
    assert Status.CONVERGED in batch.status
    assert_each_as_if_alone(batch, singles)
    for k, n in enumerate(batch.nit):  # recorded until they stop, NaN afterwards
        assert np.isfinite(batch.history.objective[:n, k]).all()
        assert np.isnan(batch.history.objective[n:, k]).all()
    if not callable(eta):
        assert Status.MAX_ITER in batch.status
        assert re.search(r"\d of 4 trajectories: The budget .*\.", batch.message)
        with pytest.raises(ConvergenceError, match="of 4 trajectories"):
            minimize(f, STARTS, eta=eta, **{**run, "on_failure": "raise"})


@pytest.mark.parametrize(("penalty", "rule"), [(None, AdaGrad), (L1(0.01), AdaGradDiff)])
def test_one_fails_and_the_others_finish(penalty, rule):
    etas, x0 = [0.05, 50.0, 0.2], np.array([2.0, 3.0])
    with pytest.warns(ConvergenceWarning, match="1 of 3 trajectories: .* NaN or infinite"):
        batch = minimize(Barrier(), x0, penalty, rule(etas), max_iter=60)
    singles = [
        minimize(Barrier(), x0, penalty, rule(eta), max_iter=60, on_failure="ignore")
        for eta in etas
    ]
    assert batch.status.tolist() == [Status.MAX_ITER, Status.NOT_FINITE, Status.MAX_ITER]
    assert batch.success.tolist() == [True, False, True]
    assert_each_as_if_alone(batch, singles, rtol=1e-12)
    assert np.isfinite(batch.x).all()
    assert np.isnan(batch.history.objective[batch.nit[1] :, 1]).all()
    assert np.isfinite(batch.history.objective[:, [0, 2]]).all()


@pytest.mark.parametrize("matrix", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_overflow_in_one_column(matrix):
    etas, b = [0.05, 1e4, 0.2], np.abs(REAL)
    with pytest.warns(ConvergenceWarning, match="1 of 3 trajectories"):  # and no other warning
        batch = minimize(Poisson(matrix(A), b), eta=etas, max_iter=60)
    singles = [
        minimize(Poisson(matrix(A), b), eta=eta, max_iter=60, on_failure="ignore") for eta in etas
    ]
    assert batch.status.tolist() == [Status.MAX_ITER, Status.NOT_FINITE, Status.MAX_ITER]
    assert_each_as_if_alone(batch, singles, rtol=1e-10)


def test_one_diverges_and_the_others_finish():
    etas = [0.1, 1e25, 0.3]
    batch = minimize(Bowl(), np.zeros(3), eta=etas, max_iter=40, on_failure="ignore")
    singles = [
        minimize(Bowl(), np.zeros(3), eta=eta, max_iter=40, on_failure="ignore") for eta in etas
    ]
    assert batch.status.tolist() == [Status.MAX_ITER, Status.DIVERGED, Status.MAX_ITER]
    assert_each_as_if_alone(batch, singles, rtol=1e-12)


def test_a_start_that_is_outside_the_domain():
    result = minimize(
        Barrier(), np.array([[2.0, -1.0], [3.0, 1.0]]), eta=0.1, max_iter=5, on_failure="ignore"
    )
    assert result.status.tolist() == [Status.MAX_ITER, Status.NOT_FINITE]
    assert result.nit.tolist() == [5, 0]


def test_callback_sees_all_trajectories_all_the_time(tmp_path):
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)
        intermediate_result.state.save(tmp_path / "run.npz")

    run = {"eta": [1.0, 0.7, 0.01], "tol": 1e-2, "max_iter": 60, "on_failure": "ignore"}
    result = minimize(Bowl(), np.zeros(3), **run, callback=callback)
    assert len(set(result.nit)) == 3
    assert {s.x.shape for s in seen} == {(3, 3)}
    assert {np.shape(s.fun) for s in seen} == {np.shape(s.nit) for s in seen} == {(3,)}
    assert [int(np.max(s.nit)) for s in seen] == list(range(1, len(seen) + 1))
    for k, n in enumerate(result.nit):  # copies, and a trajectory that has ended stays where it is
        assert np.array_equal(seen[n - 1].x[:, k], result.x[:, k])
        assert np.array_equal(seen[-1].x[:, k], result.x[:, k])
        assert (
            seen[0].fun_best[k]
            == minimize(Bowl(), np.zeros(3), eta=run["eta"][k], max_iter=1).fun_best
        )
    assert np.array_equal(load_state(tmp_path / "run.npz").x, result.x)
