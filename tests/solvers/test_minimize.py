"""What `minimize` promises about its result: values, stopping, history, callback, success."""

import re
import time
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

import adagrad_diff
import naive
from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Box,
    ConvergenceError,
    ConvergenceWarning,
    ElasticNet,
    Logistic,
    Rule,
    Squared,
    Status,
    iterate,
    minimize,
)
from pairwise import pairwise
from user_losses import Bowl, data

A, REAL, LABELS, CLASSES = data()
START = np.linspace(-1.0, 1.0, A.shape[1])


@pairwise(
    rule=[AdaGradDiff, AdaGrad],
    case=[("Logistic", LABELS, ("L1", 0.05)), ("LAD", REAL, ("Box", -0.2, 0.3))],
    iterations=[1, 2, 60],
)
def test_result_is_that_of_the_paper(rule, case, iterations):
    loss, target, penalty = case
    expected = naive.run(
        getattr(naive, loss)(A, target),
        START,
        getattr(naive, penalty[0])(*penalty[1:]),
        rule.__name__,
        0.3,
        iterations,
    )
    f, phi = getattr(adagrad_diff, loss)(A, target), getattr(adagrad_diff, penalty[0])(*penalty[1:])
    result = minimize(f, START, phi, rule(0.3), max_iter=iterations)

    assert isinstance(result, OptimizeResult)
    np.testing.assert_allclose(result.x, expected.x[-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.x_avg, expected.x_avg, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.jac, expected.g[-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.fun, expected.F[-1], rtol=1e-12)
    np.testing.assert_allclose(result.fun_best, expected.F.min(), rtol=1e-12)
    np.testing.assert_allclose(result.x_best, expected.x_best, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.subgradient_norm, expected.subgradient_norm[-1], rtol=1e-8)
    assert (result.nit, result.nfev, result.state.n) == (iterations, iterations + 1, iterations)
    assert (result.status, result.success) == (Status.MAX_ITER, True)
    assert type(result.status) is int
    assert type(result.success) is bool
    assert re.fullmatch(r"[A-Z].*max_iter.*\.", result.message)
    assert np.array_equal(result.history.iteration, np.arange(1, iterations + 1))
    np.testing.assert_allclose(result.history.objective, expected.F[1:], rtol=1e-12)
    np.testing.assert_allclose(result.history.mean_step, expected.mean_step, rtol=1e-10)
    np.testing.assert_allclose(
        result.history.subgradient_norm, expected.subgradient_norm, rtol=1e-8
    )
    assert (np.diff(result.history.time) >= 0).all()
    assert result.history.time[0] >= 0


def test_one_evaluation_per_iteration():
    bowl = Bowl()
    result = minimize(
        bowl,
        np.zeros(3),
        eta=0.5,
        max_iter=12,
        tol=1e-300,
        on_failure="ignore",
        callback=lambda result: None,
    )
    assert bowl.calls == result.nfev == 13


def test_starts_at_zero_by_default_and_leaves_x0_alone():
    f = Logistic(A, LABELS)
    x0 = np.zeros(A.shape[1])
    x0.flags.writeable = False
    first, second = minimize(f, eta=0.3, max_iter=20), minimize(f, x0, eta=0.3, max_iter=20)
    assert np.array_equal(first.x, second.x)
    kept = START.copy()
    result = minimize(f, kept, eta=0.3, max_iter=20)
    assert np.array_equal(kept, START)
    assert not any(
        np.shares_memory(kept, array)
        for array in (result.x, result.x_best, result.x_avg, result.state.x)
    )
    assert np.array_equal(minimize(f, [0] * A.shape[1], eta=0.3, max_iter=20).x, first.x)


def test_no_iterations():
    result = minimize(Logistic(A, LABELS), START, L1(0.1), eta=0.3, max_iter=0)
    f, g = naive.Logistic(A, LABELS)(START)
    for x in (result.x, result.x_avg, result.x_best):
        assert np.array_equal(x, START)
    np.testing.assert_allclose(
        [result.fun, result.fun_best], f + 0.1 * np.abs(START).sum(), rtol=1e-13
    )
    np.testing.assert_allclose(result.jac, g, rtol=1e-12)
    assert (result.nit, result.nfev, result.status, result.success) == (0, 1, Status.MAX_ITER, True)
    assert result.history.iteration.shape == result.history.objective.shape == (0,)
    assert np.isnan(result.subgradient_norm)


def test_eta_eps_and_blocks_are_those_of_adagrad_diff():
    f = Logistic(A, LABELS)
    short = minimize(f, eta=0.3, eps=0.1, blocks="all", max_iter=20)
    long = minimize(f, rule=AdaGradDiff(eta=0.3, eps=0.1, blocks="all"), max_iter=20)
    assert np.array_equal(short.x, long.x)
    assert not np.array_equal(short.x, minimize(f, eta=0.3, max_iter=20).x)


def test_float32_data_give_float32_iterates():
    result = minimize(Logistic(A.astype(np.float32), LABELS), eta=0.3, max_iter=50)
    assert {a.dtype for a in (result.x, result.x_avg, result.x_best, result.jac)} == {
        np.dtype(np.float32)
    }
    np.testing.assert_allclose(
        result.x, minimize(Logistic(A, LABELS), eta=0.3, max_iter=50).x, rtol=1e-3
    )


@pairwise(
    rule=[
        AdaGradDiff(0.3),
        AdaGrad(0.3, blocks="all"),
        AdaGradDiff(0.1, scale=np.linspace(0.5, 2.0, 6)),
    ],
    penalty=[L1(0.1), Box(-0.5, 0.5), ElasticNet(0.1, 0.5)],
    intercept=[False, True],
)
def test_u_is_a_subgradient_of_the_objective(rule, penalty, intercept):
    f = Logistic(A, LABELS, intercept=intercept)
    seen_zero = seen_other = 0
    x_prev, g_prev = np.zeros(f.shape), f.value_and_grad(np.zeros(f.shape))[1]
    for state in islice(iterate(f, np.zeros(f.shape), penalty, rule), 150):
        u = (x_prev - state.x) / state.step + state.g - g_prev
        x_prev, g_prev = state.x, state.g
        np.testing.assert_allclose(state.subgradient_norm, np.linalg.norm(u), rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(state.g, f.value_and_grad(state.x)[1], rtol=1e-12, atol=1e-14)
        v = u - state.g  # must be a subgradient of the penalty at x
        x, v, free = state.x[: A.shape[1]], v[: A.shape[1]], v[A.shape[1] :]
        assert np.abs(free).max(initial=0.0) < 1e-8
        if isinstance(penalty, Box):
            special, low, high = np.abs(x) == 0.5, x == -0.5, x == 0.5
            assert (np.abs(v[~special]) < 1e-8).all()
            assert (v[low] <= 1e-12).all()
            assert (v[high] >= -1e-12).all()
        else:
            special = x == 0
            assert (np.abs(v[special]) <= 0.1 + 1e-12).all()
            np.testing.assert_allclose(
                v[~special], (0.1 * np.sign(x) + penalty.l2 * x)[~special], atol=1e-8
            )
        seen_zero, seen_other = seen_zero + special.sum(), seen_other + (~special).sum()
    assert min(seen_zero, seen_other) > 10  # both kinds of coordinates have been looked at


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_tol_stops_at_the_first_subgradient_that_is_small_enough(tol):
    f = Logistic(A, LABELS, l2=0.1)
    g1 = np.linalg.norm(f.value_and_grad(START)[1])
    norms = minimize(f, START, L1(0.02), eta=0.5, max_iter=3000).history.subgradient_norm
    n = 1 + int(np.argmax(norms <= tol * g1))
    assert 1 < n < 3000
    result = minimize(f, START, L1(0.02), eta=0.5, max_iter=3000, tol=tol, history=0)
    assert (result.nit, result.status, result.success) == (n, Status.CONVERGED, True)
    assert np.array_equal(result.x, minimize(f, START, L1(0.02), eta=0.5, max_iter=n).x)
    assert result.subgradient_norm == norms[n - 1]
    exact = minimize(
        f, START, L1(0.02), eta=0.5, max_iter=n, tol=tol
    )  # the last iteration allowed is enough
    assert (exact.status, exact.success) == (Status.CONVERGED, True)


def test_the_memory_of_a_rule_does_not_loosen_the_tolerance():
    """Names in the memory mean nothing to the stopping criterion."""

    @dataclass(frozen=True, eq=False)
    class Huge(Rule):
        def init(self, x, g):
            return {"total": np.full_like(g, 1e20)}

        def update(self, memory, n, x, g):
            return memory, x - self.eta * g, self.eta

    f = Squared(A, REAL)
    result = minimize(f, START, rule=Huge(1e-3), tol=1e-6, max_iter=50, on_failure="ignore")
    assert not result.success
    assert result.nit == 50


def test_a_vanishing_first_gradient_does_not_tighten_the_tolerance():
    """Started where the loss is smallest, relative to the first gradient nothing is small."""
    f, x0 = Squared(A, REAL), np.linalg.lstsq(A, REAL)[0]
    result = minimize(f, x0, L1(0.05), eta=0.3, tol=1e-3, stop="subgradient", max_iter=3000)
    assert result.success
    assert result.subgradient_norm > 1e-3 * np.linalg.norm(f.value_and_grad(x0)[1])


def test_a_start_that_is_not_finite():
    with pytest.warns(ConvergenceWarning, match="is NaN or infinite at x0"):
        result = minimize(lambda x: (np.nan, x), [1.0], eta=0.1, max_iter=5)
    assert result.status == Status.NOT_FINITE
    assert result.nit == 0


def test_a_missed_tolerance_is_no_success():
    run = {"loss": Logistic(A, LABELS), "eta": 0.1, "max_iter": 3, "tol": 1e-9}
    with pytest.warns(ConvergenceWarning, match="before the tolerance was reached") as record:
        warned = minimize(**run)
    assert record[0].filename == __file__
    with pytest.raises(ConvergenceError, match="tolerance") as error:
        minimize(**run, on_failure="raise")
    ignored = minimize(**run, on_failure="ignore")
    for result in (warned, error.value.result, ignored):
        assert (result.nit, result.status, result.success) == (3, Status.MAX_ITER, False)
        assert np.array_equal(result.x, warned.x)
        assert re.fullmatch(r"[A-Z].*tolerance.*\.", result.message)


@pytest.mark.parametrize("tol", [None, 1e-12])
def test_max_time(tol):
    options = {"eta": 1e-9, "max_iter": 10**9, "tol": tol, "history": 0, "on_failure": "ignore"}
    begin = time.perf_counter()
    result = minimize(Bowl(), np.zeros(3), **options, max_time=0.05)
    assert time.perf_counter() - begin >= 0.05
    assert (result.status, result.success) == (Status.MAX_TIME, tol is None)
    assert "max_time" in result.message
    assert minimize(Bowl(), np.zeros(3), **options, max_time=1e-9).nit == 1


@pytest.mark.parametrize("every", [0, 1, 7, 30, 31])
def test_history_records_every_kth_iteration(every):
    full, some = (minimize(LAD(A, REAL), eta=0.1, max_iter=30, history=k) for k in (1, every))
    expected = np.arange(every, 31, every) if every else np.array([], int)
    assert np.array_equal(some.history.iteration, expected)
    for name in ("objective", "mean_step", "subgradient_norm"):
        assert np.array_equal(
            getattr(some.history, name), getattr(full.history, name)[expected - 1]
        )
    assert some.history.time.shape == expected.shape
    assert np.array_equal(some.x, full.x)


def test_callback_sees_every_iterate():
    seen = []
    result = minimize(LAD(A, REAL), penalty=L1(0.01), eta=0.1, max_iter=20, callback=seen.append)
    states = [
        state.copy()
        for state in islice(iterate(LAD(A, REAL), None, L1(0.01), AdaGradDiff(0.1)), 20)
    ]
    assert all(isinstance(s, OptimizeResult) for s in seen)
    assert [s.nit for s in seen] == list(range(1, 21))
    for stored, state in zip(seen, states, strict=True):
        assert np.array_equal(stored.x, state.x)
        assert stored.fun == state.fun
    assert np.array_equal(seen[-1].x, result.x)
    seen[-1].x[:] = np.nan  # a copy
    assert np.isfinite(result.x).all()


@pytest.mark.parametrize(("tol", "success"), [(None, True), (1e-12, False)])
def test_callback_may_stop_the_run(tol, success):
    def stop(intermediate_result):
        if intermediate_result.nit == 7:
            raise StopIteration

    result = minimize(Squared(A, REAL), eta=0.1, callback=stop, tol=tol)
    assert (result.nit, result.status, result.success) == (7, Status.CALLBACK, success)
    assert "callback" in result.message
    assert np.array_equal(result.x, minimize(Squared(A, REAL), eta=0.1, max_iter=7).x)


def test_other_exceptions_pass_through():
    def fail(intermediate_result):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        minimize(Squared(A, REAL), eta=0.1, callback=fail)


def test_iterate_yields_states_that_stay_as_they_are():
    states = iterate(Bowl(), np.zeros(3), None, AdaGradDiff(0.5))
    first = next(states)
    kept = first.copy()
    assert next(states) is not first
    assert np.array_equal(kept.x, first.x)
    last = next(islice(states, 1997, None))
    assert last.n == 2000
    np.testing.assert_allclose(last.x, [1.0, 1 / 3, 5.0], rtol=1e-6)
    assert np.array_equal(last.x, minimize(Bowl(), np.zeros(3), eta=0.5, max_iter=2000).x)
