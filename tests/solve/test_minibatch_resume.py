"""With minibatches, too, a run that is stopped or interrupted anywhere and taken up again is the one in one go, bit for bit."""

import signal

import numpy as np
import pytest
from scipy import sparse
from test_checkpoints import check_crashes
from test_interrupt import interrupted
from test_resume import assert_same

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Adam,
    AdaPG,
    DoG,
    GroupL2,
    Logistic,
    Minibatch,
    Multinomial,
    Squared,
    Status,
    iterate,
    load_state,
    minimize,
)
from adagrad_diff.losses.linear import LinearOracle
from adagrad_diff.solve.walk import Walk
from looping import looped
from user_losses import data

A, REAL, LABELS, CLASSES = data(samples=60, features=6)
RARE = A * (A > 0.7)
CSR = sparse.csr_array(RARE)
STARTS = np.random.default_rng(1).standard_normal((6, 3))
MANY = data(samples=20_000, features=40)  # enough work for several threads


def minibatch(loss, size=2, **options):
    return lambda: Minibatch(loss(), size, **options)


CASES = {
    "dense": (minibatch(lambda: Logistic(A, LABELS)), {"penalty": L1(0.02), "eta": 0.3}),
    "CSR, intercept": (minibatch(lambda: Logistic(CSR, LABELS, intercept=True)), {"penalty": L1(0.02), "eta": 0.3}),
    "CSC, ridge": (minibatch(lambda: LAD(sparse.csc_array(RARE), REAL, l2=0.1)), {"eta": 0.3}),
    "float32": (minibatch(lambda: Logistic(CSR.astype(np.float32), LABELS)), {"penalty": L1(0.02), "eta": 0.3}),
    "storm": (minibatch(lambda: Logistic(CSR, LABELS), reduce="storm"), {"penalty": L1(0.02), "eta": 0.3}),
    "noise": (minibatch(lambda: Logistic(CSR, LABELS), reduce=None, seed=3), {"eta": 0.3}),
    "step by step": (minibatch(lambda: Logistic(CSR, LABELS)), {"rule": AdaGrad(0.3), "penalty": L1(0.02)}),
    "Adam": (minibatch(lambda: Squared(CSR, REAL)), {"rule": Adam(0.02)}),
    "DoG": (minibatch(lambda: Squared(A, REAL)), {"rule": DoG()}),
    "AdaPG": (minibatch(lambda: Squared(A, REAL)), {"rule": AdaPG()}),
    "classes": (minibatch(lambda: Multinomial(CSR, CLASSES, intercept=True)), {"rule": AdaGradDiff(0.3, blocks="row")}),
    "trajectories": (minibatch(lambda: Logistic(CSR, LABELS)), {"rule": AdaGradDiff([0.1, 0.3, 1.0]), "x0": STARTS}),
    "trajectories, storm": (minibatch(lambda: LAD(A, REAL), reduce="storm"), {"eta": [0.1, 0.3], "penalty": L1(0.02)}),
    "threads": (minibatch(lambda: Logistic(MANY[0], MANY[2]), 50), {"eta": [0.1, 0.3, 0.5]}),
    "no batches": (minibatch(lambda: Logistic(CSR, LABELS), 40), {"eta": 0.3}),
}


@looped("case", CASES)
def test_5_and_5_iterations_are_10(case, tmp_path):
    make, arguments = CASES[case]
    whole, first = (minimize(make(), **arguments, max_iter=n) for n in (10, 5))
    first.state.save(tmp_path / "state.npz")
    rest = {name: value for name, value in arguments.items() if name != "x0"}
    for state in (first.state, load_state(tmp_path / "state.npz")):
        second = minimize(make(), **rest, max_iter=5, state=state)
        assert_same(second, whole)
        for name in ("iteration", "objective", "mean_step", "subgradient_norm", "passes"):
            parts = [getattr(run.history, name) for run in (first, second)]
            np.testing.assert_array_equal(np.concatenate(parts), getattr(whole.history, name))


@looped("case", ["dense", "CSR, intercept", "classes", "trajectories"])
def test_a_stop_after_every_round(case):
    make, arguments = CASES[case]
    whole, result = minimize(make(), **arguments, max_iter=12), minimize(make(), **arguments, max_iter=1)
    rest = {name: value for name, value in arguments.items() if name != "x0"}
    for _ in range(11):
        result = minimize(make(), **rest, max_iter=1, state=result.state)
    assert_same(result, whole)


@looped("case", ["CSR, intercept", "step by step", "trajectories"])
def test_crashes(case, tmp_path):
    make, arguments = CASES[case]
    check_crashes(make, tmp_path / "run.npz", at=(3, 17), **arguments)


@looped("options", [{"eta": 0.3, "stop": "gap", "tol": 1e-12, "max_iter": 40}, {"tol": 0.0, "max_iter": 80}, {"finish": False}])
def test_crashes_of_certified_runs_and_races(options, tmp_path):
    def make():
        return Minibatch(Logistic(CSR, LABELS, intercept=True), 2)

    check_crashes(make, tmp_path / "run.npz", at=(3, 17), penalty=L1(0.02), **options)


@looped("change, words", [({"seed": 1}, "loss.seed"), ({"reduce": "storm"}, "loss.reduce"), ({"size": 3}, "loss.size")])
def test_other_batches_are_another_problem(change, words):
    state = minimize(Minibatch(Logistic(CSR, LABELS), 2), eta=0.3, max_iter=3).state
    with pytest.raises(ValueError, match=f"another problem: {words} is not the same"):
        minimize(Minibatch(Logistic(CSR, LABELS), **{"size": 2, **change}), eta=0.3, state=state)
    with pytest.raises(ValueError, match=r"another problem: .* is not the same"):
        minimize(Logistic(CSR, LABELS), eta=0.3, state=state)
    other = CSR.copy()
    other.data[3] += 1e-7
    with pytest.raises(ValueError, match="the data of the loss are not the same"):
        minimize(Minibatch(Logistic(other, LABELS), 2), eta=0.3, state=state)


def test_iterate_continues_and_leaves_the_state_alone():
    loss = Minibatch(Logistic(CSR, LABELS), 2)
    first = minimize(loss, eta=0.3, max_iter=6).state
    before, states = first.copy(), iterate(loss, rule=AdaGradDiff(0.3), state=first)
    for n in range(7, 12):
        state = next(states)
        np.testing.assert_array_equal(state.x, minimize(loss, eta=0.3, max_iter=n).x)
    np.testing.assert_array_equal(first.x, before.x)
    assert first.memory["minibatch.steps"] == before.memory["minibatch.steps"] < state.memory["minibatch.steps"]


# ------------------------------------------------------------ Ctrl-C


def counted(function, at, fault):
    """The function, with a fault after call `at`."""
    calls = [0]

    def called(*arguments, **options):
        answer = function(*arguments, **options)
        calls[0] += 1
        if calls[0] == at:
            fault()
        return answer

    return called


def stop():
    raise KeyboardInterrupt


@looped("place", ["leap", "step", "estimate", "gradient"])
@looped("at", [1, 2, 20])
@looped("columns", [False, True])
def test_interrupted_in_the_middle_of_a_round(place, at, columns, monkeypatch):
    """A walk that was not completed was never made."""
    from adagrad_diff.losses.estimates import Estimates
    from adagrad_diff.solve.step import Step

    rule = AdaGradDiff([0.1, 0.3] if columns else 0.3, blocks=None if place == "leap" else [0, 1, 2, 3, 4, 5])
    penalty = L1(0.02) if place == "leap" else GroupL2(0.02, np.arange(6))
    loss, whole = Minibatch(Logistic(CSR, LABELS), 2), {"max_iter": 30, "penalty": penalty, "rule": rule}
    owner, name = {
        "leap": (Walk, "_leap"),
        "step": (Step, "__call__"),
        "estimate": (Estimates, "__call__"),
        "gradient": (LinearOracle, "__call__"),
    }[place]
    with monkeypatch.context() as patch:
        # The first two gradients are those of the start, and of the snapshot.
        patch.setattr(owner, name, counted(getattr(owner, name), at + 3 * (place == "gradient"), stop))
        result = interrupted(loss, **whole)
    assert result.status == Status.INTERRUPTED if not columns else (result.status == Status.INTERRUPTED).all()
    n = int(np.max(result.nit))
    so_far = minimize(loss, **{**whole, "max_iter": n})
    for field in ("x", "x_avg", "x_best", "fun", "jac", "nit"):
        np.testing.assert_array_equal(result[field], so_far[field], err_msg=field)
    for field, array in so_far.state.memory.items():
        np.testing.assert_array_equal(result.state.memory[field], array, err_msg=field)
    unknown = np.isnan(result.subgradient_norm)  # is fine, as long as it is said
    np.testing.assert_array_equal(np.where(unknown, so_far.subgradient_norm, result.subgradient_norm), so_far.subgradient_norm)
    rest = minimize(loss, **{**whole, "max_iter": 30 - n}, state=result.state)
    assert_same(rest, minimize(loss, **whole))


def test_a_signal_in_the_middle_of_a_round(default_handler, monkeypatch):
    """The round is completed."""
    loss, expected = Minibatch(Logistic(CSR, LABELS), 2), minimize(Minibatch(Logistic(CSR, LABELS), 2), eta=0.3, max_iter=30)
    with monkeypatch.context() as patch:
        patch.setattr(Walk, "_leap", counted(Walk._leap, 5, lambda: signal.raise_signal(signal.SIGINT)))
        result = interrupted(loss, eta=0.3, max_iter=30)
    assert result.status == Status.INTERRUPTED
    assert 5 <= result.nit < 30
    assert_same(minimize(loss, eta=0.3, max_iter=30 - result.nit, state=result.state), expected)
