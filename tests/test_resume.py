"""A run that is stopped, saved, loaded and continued is the run that was never stopped, bit for bit."""

from dataclasses import fields

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Box,
    ElasticNet,
    Hinge,
    Logistic,
    Multinomial,
    Squared,
    Status,
    iterate,
    load_state,
    minimize,
)
from user_losses import Bowl, data

A, REAL, LABELS, CLASSES = data()
MANY = data(samples=2500, features=200)  # enough work for several threads
STARTS = np.random.default_rng(1).standard_normal((6, 3))


def decreasing(n):
    return 1.0 / np.sqrt(n)


CASES = {
    "AdaGradDiff": lambda: (LAD(A, REAL), {"rule": AdaGradDiff(0.3), "penalty": L1(0.02)}),
    "AdaGrad": lambda: (LAD(A, REAL), {"rule": AdaGrad(0.3), "penalty": Box(-0.3, 0.3)}),
    "one block": lambda: (Hinge(A, LABELS), {"rule": AdaGradDiff(0.3, blocks="all"), "x0": STARTS[:, 0]}),
    "blocks": lambda: (Hinge(A, LABELS), {"rule": AdaGrad(0.3, blocks=[0, 1, 0, 2, 2, 1])}),
    "scale": lambda: (Squared(A, REAL), {"rule": AdaGradDiff(0.3, scale=np.linspace(0.5, 2.0, 6))}),
    "intercept": lambda: (Logistic(A, LABELS, intercept=True, l2=0.1), {"rule": AdaGradDiff(0.3), "penalty": L1(0.02)}),
    "callable eta": lambda: (LAD(A, REAL), {"rule": AdaGradDiff(decreasing)}),
    "Fortran": lambda: (LAD(np.asfortranarray(A), REAL), {"rule": AdaGradDiff(0.3)}),
    "CSR": lambda: (LAD(sparse.csr_array(A * (A > 0)), REAL), {"rule": AdaGradDiff(0.3)}),
    "CSC": lambda: (LAD(sparse.csc_array(A * (A > 0)), REAL), {"rule": AdaGradDiff(0.3)}),
    "float32": lambda: (LAD(A.astype(np.float32), REAL), {"rule": AdaGradDiff(0.3), "penalty": ElasticNet(0.02, 0.1)}),
    "threads": lambda: (Logistic(MANY[0], MANY[2]), {"rule": AdaGradDiff(0.3)}),
    "Multinomial": lambda: (Multinomial(A, CLASSES, intercept=True), {"rule": AdaGradDiff(0.3, blocks="row")}),
    "function": lambda: (Bowl(), {"rule": AdaGradDiff(0.3), "x0": [1.0, 2.0, 3.0]}),
    "trajectories": lambda: (LAD(A, REAL), {"rule": AdaGradDiff([0.1, 0.3, 1.0]), "penalty": L1(0.02), "x0": STARTS}),
    "trajectories of matrices": lambda: (Multinomial(A, CLASSES), {"rule": AdaGrad([0.1, 0.3], blocks="row")}),
    "trajectories, callable eta": lambda: (LAD(A, REAL), {"rule": AdaGradDiff(decreasing), "x0": STARTS}),
}
NAMES = ("x", "x_avg", "x_best", "fun", "fun_best", "jac", "nit", "nfev", "subgradient_norm", "status", "success")


def assert_same_state(left, right):
    for field in fields(left):
        one, other = getattr(left, field.name), getattr(right, field.name)
        np.testing.assert_array_equal(one, other, err_msg=field.name)  # NaN is equal to NaN
        assert np.asarray(one).dtype == np.asarray(other).dtype, field.name


def assert_same(left, right):
    for name in NAMES:
        assert np.array_equal(left[name], right[name], equal_nan=name == "subgradient_norm"), name
    assert left.x.dtype == right.x.dtype
    assert_same_state(left.state, right.state)


@pytest.mark.parametrize("case", CASES)
def test_37_and_63_iterations_are_100(case, tmp_path):
    loss, arguments = CASES[case]()
    whole = minimize(loss, **arguments, max_iter=100, history=3)
    first = minimize(loss, **arguments, max_iter=37, history=3)
    assert np.max(first.nit) == 37
    before = first.state.copy()
    first.state.save(tmp_path / "state.npz")
    loaded = load_state(tmp_path / "state.npz")
    assert_same_state(loaded, first.state)
    arguments.pop("x0", None)  # not needed any more
    for state in (first.state, loaded):
        second = minimize(loss, **arguments, max_iter=63, history=3, state=state)
        assert_same(second, whole)
        for name in ("iteration", "objective", "mean_step", "subgradient_norm"):
            parts = [getattr(run.history, name) for run in (first, second)]
            assert np.array_equal(np.concatenate(parts), getattr(whole.history, name)), name
    assert_same_state(first.state, before)  # a state that is passed on is not modified


def test_stop_after_every_iteration():
    loss = LAD(A, REAL)
    whole, state = minimize(loss, eta=0.3, max_iter=30), None
    for _ in range(30):
        result = minimize(loss, eta=0.3, max_iter=1, state=state)
        state = result.state
    assert_same(result, whole)


def test_iterate_continues_and_leaves_the_state_alone():
    first = minimize(LAD(A, REAL), eta=0.3, max_iter=10).state
    before = first.copy()
    states = iterate(LAD(A, REAL), rule=AdaGradDiff(0.3), state=first)
    for n in range(11, 16):
        state = next(states)
        assert state.n == n
    assert np.array_equal(state.x, minimize(LAD(A, REAL), eta=0.3, max_iter=15).x)
    assert_same_state(first, before)


def test_result_and_state_share_no_memory_that_a_user_may_change():
    result = minimize(LAD(A, REAL), eta=0.3, max_iter=10)
    expected = minimize(LAD(A, REAL), eta=0.3, max_iter=20)
    for name in ("x", "jac", "x_avg", "x_best"):
        result[name][:] = np.nan
    assert_same(minimize(LAD(A, REAL), eta=0.3, max_iter=10, state=result.state), expected)


def test_the_tolerance_refers_to_the_first_gradient_of_all():
    loss = Logistic(A, LABELS, l2=0.1)
    whole = minimize(loss, STARTS[:, 0], eta=0.5, tol=1e-4)
    assert 10 < whole.nit < 900
    first = minimize(loss, STARTS[:, 0], eta=0.5, max_iter=10)
    assert_same(minimize(loss, eta=0.5, tol=1e-4, state=first.state), whole)


def test_trajectories_that_have_converged_stay_where_they_are():
    loss, arguments = Logistic(A, LABELS, l2=0.3), {"eta": [0.02, 0.5, 1.0], "tol": 1e-4, "on_failure": "ignore"}
    whole = minimize(loss, **arguments, max_iter=300)
    first = minimize(loss, **arguments, max_iter=100)
    assert set(first.status) == {Status.CONVERGED, Status.MAX_ITER}
    assert_same(minimize(loss, **arguments, max_iter=200, state=first.state), whole)


def test_trajectories_that_stopped_apart_go_on_from_their_own_n():
    loss, arguments = Logistic(A, LABELS, l2=0.3), {"rule": AdaGradDiff(decreasing), "max_iter": 200}
    first = minimize(loss, STARTS, **arguments, tol=1e-2)
    assert len(set(first.nit)) > 1
    second = minimize(loss, rule=AdaGradDiff(decreasing), max_iter=20, state=first.state)
    for k, n in enumerate(second.nit):
        assert n == first.nit[k] + 20
        alone = minimize(loss, STARTS[:, k], **{**arguments, "max_iter": n})
        np.testing.assert_allclose(second.x[:, k], alone.x, rtol=1e-11)
        np.testing.assert_allclose(second.x_avg[:, k], alone.x_avg, rtol=1e-11)


def test_a_failed_run_cannot_be_continued_into_a_success():
    run = {"loss": Bowl(at=5, fault=lambda f, g: (np.nan, g)), "eta": 0.3, "on_failure": "ignore"}
    first = minimize(**run, x0=np.zeros(3))
    second = minimize(**run, state=first.state)
    assert (second.status, second.success, second.nit) == (Status.NOT_FINITE, False, first.nit)
    assert np.array_equal(second.x, first.x)


def test_checkpoints_from_the_callback(tmp_path):
    loss = LAD(A, REAL)

    def checkpoint(intermediate_result):
        if intermediate_result.nit == 13:
            intermediate_result.state.save(str(tmp_path / "run"))  # a str, and no suffix is added

    whole = minimize(loss, eta=0.3, max_iter=40, callback=checkpoint)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert_same(minimize(loss, eta=0.3, max_iter=27, state=load_state(str(tmp_path / "run"))), whole)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rule": AdaGrad(0.3)}, "'state' was made by the rule AdaGradDiff; it cannot be continued by AdaGrad"),
        ({"rule": AdaGradDiff(0.3, blocks="all")}, "'state' was made with other blocks"),
        ({"rule": AdaGradDiff([0.3, 0.5])}, "'eta' has 2 values"),
        ({"loss": LAD(A[:, :4], REAL)}, r"'state' has x of shape \(6,\), but this loss needs \(4,\)"),
        ({"loss": LAD(A, REAL, intercept=True)}, r"'state' has x of shape \(6,\), but this loss needs \(7,\)"),
        ({"loss": LAD(A.astype(np.float32), REAL)}, "'state' .*float64.*float32"),
        ({"x0": np.zeros(5)}, r"'x0' has shape \(5,\), but 'state' has x of shape \(6,\)"),
    ],
)
def test_states_that_do_not_fit(change, words):
    state = minimize(LAD(A, REAL), eta=0.3, max_iter=3).state
    with pytest.raises(ValueError, match=words):
        minimize(**{"loss": LAD(A, REAL), "rule": AdaGradDiff(0.3), "state": state, **change})


@pytest.mark.parametrize("state", ["run.npz", {"x": np.zeros(6)}, minimize(LAD(A, REAL), eta=0.3, max_iter=3)])
def test_only_a_state_is_a_state(state):
    with pytest.raises(TypeError, match="'state' must be"):
        minimize(LAD(A, REAL), eta=0.3, state=state)
