"""With minibatches, too, a run that is stopped or interrupted anywhere and taken up again is the one in one go, bit for bit."""

import signal

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Adam,
    AdaPG,
    DoG,
    GroupL2,
    Interrupted,
    Logistic,
    Minibatch,
    Multinomial,
    Squared,
    Status,
    load_state,
    minimize,
)
from looping import looped
from pairwise import pairwise
from resuming import assert_same_run, check_crashes
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
    "CSR, intercept": (
        minibatch(lambda: Logistic(CSR, LABELS, intercept=True)),
        {"penalty": L1(0.02), "eta": 0.3},
    ),
    "CSC, ridge": (minibatch(lambda: LAD(sparse.csc_array(RARE), REAL, l2=0.1)), {"eta": 0.3}),
    "float32": (
        minibatch(lambda: Logistic(CSR.astype(np.float32), LABELS)),
        {"penalty": L1(0.02), "eta": 0.3},
    ),
    "noise": (
        minibatch(lambda: Logistic(CSR, LABELS), reduce=None, seed=3),
        {"penalty": L1(0.02), "eta": 0.3},
    ),
    "step by step": (
        minibatch(lambda: Logistic(CSR, LABELS)),
        {"rule": AdaGrad(0.3), "penalty": L1(0.02)},
    ),
    "Adam": (minibatch(lambda: Squared(CSR, REAL)), {"rule": Adam(0.02)}),
    "DoG": (minibatch(lambda: Squared(A, REAL)), {"rule": DoG()}),
    "AdaPG": (minibatch(lambda: Squared(A, REAL)), {"rule": AdaPG()}),
    "classes": (
        minibatch(lambda: Multinomial(CSR, CLASSES, intercept=True)),
        {"rule": AdaGradDiff(0.3, blocks="row")},
    ),
    "trajectories": (
        minibatch(lambda: Logistic(CSR, LABELS)),
        {"rule": AdaGradDiff([0.1, 0.3, 1.0]), "x0": STARTS},
    ),
    "trajectories, noise": (
        minibatch(lambda: LAD(A, REAL), reduce=None),
        {"eta": [0.1, 0.3], "penalty": L1(0.02)},
    ),
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
        assert_same_run(second, whole, history=False)
        for name in ("iteration", "objective", "mean_step", "subgradient_norm", "passes"):
            parts = [getattr(run.history, name) for run in (first, second)]
            np.testing.assert_array_equal(np.concatenate(parts), getattr(whole.history, name))


@pytest.mark.parametrize("case", ["CSR, intercept", "step by step", "trajectories"])
def test_crashes(case, tmp_path):
    make, arguments = CASES[case]
    check_crashes(make, tmp_path / "run.npz", at=(3, 17), **arguments)


@pytest.mark.parametrize(
    "options", [{"eta": 0.3, "stop": "gap", "tol": 1e-12}, {"finish": False}], ids=["gap", "auto"]
)
def test_crashes_of_certified_runs_and_without_a_step_size(options, tmp_path):
    def make():
        return Minibatch(Logistic(CSR, LABELS, intercept=True), 2)

    check_crashes(make, tmp_path / "run.npz", at=(3, 17), penalty=L1(0.02), **options)


@looped(
    "change, words",
    [({"seed": 1}, "loss.seed"), ({"reduce": None}, "loss.reduce"), ({"size": 3}, "loss.size")],
)
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


# ------------------------------------------------------------ Ctrl-C


class Pressed(GroupL2):
    """A penalty whose prox calls `fault` at its call number `at`."""

    at, fault, calls = 0, None, 0

    def apply(self, z, step, out):
        Pressed.calls += 1
        if Pressed.calls == Pressed.at:
            Pressed.fault()
        super().apply(z, step, out)


def stop():
    raise KeyboardInterrupt


@pairwise(at=[1, 2, 40], columns=[False, True], pressed=[False, True])
def test_interrupted_in_the_middle_of_a_round(at, columns, pressed, default_handler):
    """Ctrl-C discards the epoch, also if it comes as a signal; the run resumes exactly."""
    rule = AdaGradDiff([0.1, 0.3] if columns else 0.3, blocks=[0, 1, 2, 3, 4, 5])
    run = {
        "loss": Minibatch(Logistic(CSR, LABELS), 2),
        "rule": rule,
        "penalty": Pressed(0.02, np.arange(6)),
    }
    Pressed.at, Pressed.calls = 0, 0
    whole = minimize(**run, max_iter=30)
    Pressed.calls, Pressed.at = 0, at
    Pressed.fault = staticmethod((lambda: signal.raise_signal(signal.SIGINT)) if pressed else stop)
    with pytest.raises(Interrupted) as caught:
        minimize(**run, max_iter=30)
    result = caught.value.result
    assert np.all(result.status == Status.INTERRUPTED)
    assert at < 40 or np.all(result.nit > 1)
    rest = minimize(**run, max_iter=30 - int(np.max(result.nit)), state=result.state)
    assert_same_run(rest, whole, history=False)
