"""Trajectories of a sweep that fail, losses that raise, and input that is refused."""

import threading

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Poisson,
    Status,
    named,
    sweep,
)
from looping import looped
from sweeping import (
    ETAS,
    HALF,
    REAL,
    A,
    assert_same,
    assert_single_runs,
    schedule,
    starts,
)
from user_losses import Barrier, Bowl

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl


FAILING = {
    "Poisson": (
        Poisson(A, np.round(np.abs(REAL))),
        L1(0.01),
        [0.05, 1e4, 0.2],
        starts(LAD(A, REAL)),
        Status.NOT_FINITE,
    ),
    "Poisson, CSR": (
        Poisson(sparse.csr_array(HALF), np.abs(REAL)),
        None,
        [1e5, 0.2],
        starts(LAD(A, REAL)),
        Status.NOT_FINITE,
    ),
    "out of the domain": (
        Barrier(),
        None,
        [0.05, 50.0, 0.2],
        np.array([[2.0, 3.0, 1.0], [3.0, 2.0, 1.5]]),
        Status.NOT_FINITE,
    ),
    "unbounded": (
        lambda x: (-np.sum(x**2, axis=0), -2 * x),
        None,
        [0.1, 1e20],
        np.ones((3, 2)),
        Status.DIVERGED,
    ),
}


@pytest.mark.parametrize(("case", "record"), list(zip(FAILING, [1, 7, 100, 7], strict=True)))
def test_some_diverge_and_the_others_go_on(case, record):
    loss, penalty, etas, x0s, status = FAILING[case]
    rules = {"AdaGradDiff": AdaGradDiff, "AdaGrad": AdaGrad, "schedule": schedule}
    result = sweep(loss, penalty, rules, etas, x0s, 40, record=record)
    assert (result.status == status).any()
    assert (result.status == Status.MAX_ITER).any()
    assert set(np.unique(result.status)) == {status, Status.MAX_ITER}
    assert_single_runs(result, loss, penalty, rules, x0s)
    ended = result.nit < 40
    assert np.isnan(result.objective.where(ended, drop=True).isel(iteration=-1)).all()
    assert ((result.status == status) == ended).all()
    good = [eta for eta in etas if eta < 1]  # the others are not disturbed
    assert_same(
        result.sel(eta=good).drop_attrs(),
        sweep(loss, penalty, rules, good, x0s, 40, record=record).drop_attrs(),
        1e-12,
    )


def test_those_that_failed_are_no_longer_computed():
    seen = []

    def loss(x):
        seen.append(x.shape[1])
        value, gradient = Bowl()(x)
        return np.where(np.abs(x).max(axis=0) > 1e3, np.nan, value), gradient

    result = sweep(loss, None, AdaGrad, [0.1, 1e6, 0.2, 1e7], np.zeros((3, 2)), 10, n_jobs=1)
    assert result.nit.values.ravel().tolist() == [10, 10, 0, 0, 10, 10, 0, 0]
    assert seen.count(8) == 2  # at the start and in the first iteration
    assert seen.count(4) >= 9
    assert np.isnan(result.objective.sel(eta=1e6)).all()
    assert np.array_equal(
        result.x.sel(eta=1e6).values.ravel(), np.zeros(6)
    )  # where they were last good


def test_starts_that_are_no_good():
    loss = Poisson(A, np.round(np.abs(REAL)))
    x0s = np.column_stack([np.zeros(6), np.full(6, 1e5)])
    result = sweep(loss, None, [AdaGradDiff, AdaGrad], [0.1, 0.2], x0s, 6)
    assert (result.status.sel(seed=1) == Status.NOT_FINITE).all()
    assert (result.nit.sel(seed=1) == 0).all()
    assert np.isnan(result.objective.sel(seed=1)).all()
    assert not np.isfinite(result.objective_start[1])
    assert (result.status.sel(seed=0) == Status.MAX_ITER).all()
    everything = sweep(loss, None, AdaGrad, [0.1, 0.2], x0s[:, 1:], 6)
    assert (everything.status == Status.NOT_FINITE).all()


class Wrong(Exception):
    pass


@pytest.mark.parametrize(
    ("jobs", "where"), [(1, 0.3), (2, 0.02), (3, 0.3)]
)  # the first or the last chunk
def test_an_error_in_the_loss(jobs, where, tmp_path):
    """It arrives once, as it was raised, with a note, long before the end, and nothing goes on in the background."""
    lock, calls = threading.Lock(), []

    def loss(x):
        with lock:
            calls.append(x.shape[1])
            if x.shape[1] == 2 and len(calls) > 5 and np.abs(x).max() > where:
                raise Wrong("in iteration five")
        return Bowl()(x)

    arguments = None, schedule, [0.3, 0.2, 0.02], np.zeros((3, 2)), 10**8
    with pytest.raises(Wrong, match="in iteration five") as caught:
        sweep(named("loss", loss), *arguments, record=10**7, n_jobs=jobs, checkpoint=tmp_path)
    assert str(caught.value) == "in iteration five"
    assert caught.value.__notes__[0] in [
        f"This was rule 'schedule' of the sweep, eta = {eta}." for eta in arguments[2]
    ]
    assert caught.value.__context__ is None
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith("adagrad_diff.sweep")
    ]


def test_an_error_in_a_rule(tmp_path):
    """In the function that makes it, or later in its schedule: it says which rule it was, and for which eta."""

    def made(eta):
        raise Wrong("when it is made") if eta < 0.1 else ZeroDivisionError

    def later(n):
        if n > 3:
            raise Wrong("when it runs")
        return 0.1

    first = {"good": AdaGrad, "bad one": lambda eta: AdaGrad(eta) if eta > 0.1 else made(eta)}
    second = {"good": AdaGrad, "bad one": lambda eta: AdaGradDiff(named("later", later))}
    for rules, sentence, eta in ((first, "when it is made", 0.02), (second, "when it runs", 0.3)):
        with pytest.raises(Wrong, match=sentence) as caught:
            sweep(
                named("bowl", Bowl()),
                None,
                rules,
                ETAS,
                np.zeros((3, 2)),
                10,
                checkpoint=tmp_path / sentence,
                n_jobs=1,
            )
        assert str(caught.value) == sentence
        assert caught.value.__notes__ == [f"This was rule 'bad one' of the sweep, eta = {eta}."]
    assert not (tmp_path / "when it is made").exists()


LOSS = LAD(A, REAL)
GOOD = {
    "loss": LOSS,
    "penalty": None,
    "rules": AdaGrad,
    "etas": ETAS,
    "x0s": starts(LOSS),
    "n_iter": 5,
}
BAD = [
    (
        {"etas": [0.1, 0.2, 0.1]},
        ValueError,
        "'etas' must be one or more positive numbers, each of them once",
    ),
    ({"etas": []}, ValueError, "'etas' must be one or more positive numbers"),
    ({"etas": [[0.1, 0.2]]}, ValueError, "'etas' must be one or more positive numbers"),
    (
        {"etas": [0.1, -0.2]},
        ValueError,
        r"'etas' parameter of sweep must be a positive number\. Got .*-0\.2",
    ),
    ({"etas": [0.0]}, ValueError, "'etas' parameter of sweep must be a positive number"),
    ({"etas": [np.nan]}, ValueError, "'etas' parameter of sweep must be a positive number"),
    ({"etas": ["a"]}, ValueError, "'etas' parameter of sweep must be a positive number"),
    ({"etas": np.ma.array([0.1, 0.2], mask=[0, 1])}, ValueError, "'etas' has masked entries"),
    (
        {"checkpoint": 5},
        ValueError,
        "'checkpoint' must be the path of a file or directory. Got 5 instead",
    ),
    ({"checkpoint": "a\0b"}, ValueError, "'checkpoint' must be the path of a file or directory"),
    ({"etas": None}, ValueError, "'etas' parameter of sweep must be a positive number"),
    (
        {"x0s": np.zeros((5, 2))},
        ValueError,
        r"'x0s' must have shape \(6, starts\)\. Got shape \(5, 2\) instead",
    ),
    ({"x0s": np.zeros((6, 2, 2))}, ValueError, r"'x0s' must have shape \(6, starts\)"),
    ({"x0s": np.zeros((6, 0))}, ValueError, r"'x0s' must have .*Got shape \(6, 0\)"),
    ({"x0s": 1.0}, ValueError, "'x0s' must have shape"),
    (
        {"x0s": np.where(np.eye(6) > 0, np.nan, 1.0)},
        ValueError,
        r"x0s contains nan at index \(0, 0\)",
    ),
    ({"x0s": np.full((6, 2), np.inf)}, ValueError, "x0s contains inf"),
    ({"x0s": np.full((6, 2), 1j)}, ValueError, "x0s must be real numbers"),
    ({"x0s": None}, ValueError, "x0s must be real numbers"),
    ({"loss": Bowl(), "x0s": np.zeros((3, 0))}, ValueError, "'x0s' must have"),
    (
        {"rules": []},
        TypeError,
        "'rules' must be rule classes, such as AdaGradDiff, or functions eta -> rule",
    ),
    ({"rules": {}}, TypeError, "'rules' must be rule classes"),
    ({"rules": "AdaGrad"}, TypeError, "'rules' must be rule classes"),
    ({"rules": AdaGrad(0.1)}, TypeError, "'rules' must be rule classes"),
    ({"rules": [AdaGrad, 3]}, TypeError, "'rules' must be rule classes"),
    ({"rules": {"a": AdaGrad, "b": None}}, TypeError, "'rules' must be rule classes"),
    ({"rules": {1: AdaGrad, "1": AdaGradDiff}}, ValueError, "'rules' .* names"),
    (
        {"rules": lambda eta: eta},
        TypeError,
        "'rules' must be rule classes or functions eta -> rule, but .* made 0.3",
    ),
    (
        {"rules": {"late": lambda eta: AdaGrad(eta) if eta > 0.2 else None}},
        TypeError,
        "but late made None",
    ),
    ({"rules": lambda eta: AdaGrad}, TypeError, "but rule 0 made <class"),
    ({"record": 0}, ValueError, "'record' parameter of sweep must be an integer >= 1"),
    ({"record": 2.5}, ValueError, "'record' parameter of sweep"),
    ({"n_iter": 0}, ValueError, "'n_iter' parameter of sweep must be an integer >= 1"),
    ({"n_iter": 10.0}, ValueError, "'n_iter' parameter of sweep"),
    ({"n_iter": True}, ValueError, "'n_iter' parameter of sweep"),
    ({"n_jobs": 0}, ValueError, "'n_jobs' parameter of sweep must be an integer >= 1"),
    ({"n_jobs": 1.5}, ValueError, "'n_jobs' parameter of sweep"),
    (
        {"loss": lambda x: (float(np.sum(x**2)), 2 * x)},
        ValueError,
        "The loss must return one value per column of x",
    ),
    (
        {"loss": lambda x: (float(np.sum(x**2)), 2 * x), "x0s": np.zeros(6)},
        ValueError,
        "one value per column of x",
    ),
    (
        {"loss": lambda x: np.sum(x**2, axis=0)},
        TypeError,
        r"must return a pair \(value, gradient\)",
    ),
    ({"loss": 3}, TypeError, "'loss' must be a loss"),
    ({"penalty": 3}, TypeError, "'penalty' must be None or have methods"),
]


@looped(("change", "error", "sentence"), BAD)
def test_bad_input(change, error, sentence, tmp_path):
    """It is said before anything is computed or written."""
    with pytest.raises(error, match=sentence):
        sweep(**(GOOD | {"checkpoint": tmp_path / "none"} | change))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("jobs", [None, -1])
def test_every_core(jobs):
    assert_same(sweep(**GOOD, n_jobs=jobs), sweep(**GOOD), rtol=1e-12)
