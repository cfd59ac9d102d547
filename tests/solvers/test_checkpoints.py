"""`minimize(checkpoint=...)`: a run that is interrupted and called again gives the same bits as an uninterrupted run."""

import json
import math
import os
import signal
import time

import numpy as np
import pytest

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    ConvergenceError,
    ConvergenceWarning,
    Hinge,
    Interrupted,
    Logistic,
    Multinomial,
    Ridge,
    Status,
    minimize,
)
from damage import at_most
from pairwise import pairwise
from resuming import Crash, assert_same_run, check_crashes, crash_at
from rule_zoo import KINDS, made
from user_losses import Bowl, data

A, REAL, LABELS, CLASSES = data(samples=60, features=6)
START = [1.0, 2.0, 3.0]
STARTS = np.random.default_rng(1).standard_normal((6, 3))


@pytest.fixture(autouse=True)
def disk(monkeypatch):
    """Skip the synchronization with the disk, since no file has to survive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pairwise(kind=KINDS, dtype=[np.float64, np.float32], trajectories=[False, True])
def test_every_rule(tmp_path, kind, dtype, trajectories):
    loss = LAD if kind.__name__ not in ("AdaPG", "FISTA") else Logistic
    target = REAL if loss is LAD else LABELS
    options = {"rule": made(kind), "penalty": L1(0.02)}
    if trajectories:
        options["x0"] = STARTS.astype(dtype)
    check_crashes(
        lambda: loss(A.astype(dtype), target), tmp_path / "run.npz", (6,), max_iter=12, **options
    )


MIXED = {
    "several etas": (lambda: LAD(A, REAL), {"rule": AdaGradDiff([0.1, 0.3, 1.0]), "x0": STARTS}),
    "with gaps": (
        lambda: LAD(A, REAL),
        {"eta": 0.3, "penalty": L1(0.05), "stop": "gap", "tol": 1e-9},
    ),
    "matrices": (
        lambda: Multinomial(A, CLASSES, intercept=True),
        {"rule": AdaGrad(0.3, blocks="row"), "penalty": L1(0.01)},
    ),
    "a function": (Bowl, {"eta": 0.3, "x0": START}),
    "a schedule": (lambda: LAD(A, REAL), {"rule": AdaGradDiff(lambda n: 1.0 / np.sqrt(n))}),
    "no record": (lambda: LAD(A, REAL), {"eta": 0.3, "history": 0}),
    "auto, single": (
        lambda: Hinge(A.astype(np.float32), LABELS, intercept=True),
        {"penalty": Ridge(0.02)},
    ),
    "auto, function": (Bowl, {"x0": START}),
    "auto, subgradient": (
        lambda: Logistic(A, LABELS),
        {"penalty": L1(0.02), "stop": "subgradient", "tol": 1e-13},
    ),
    "auto, matrices": (lambda: Multinomial(A, CLASSES, intercept=True), {"penalty": L1(0.01)}),
}


@pytest.mark.parametrize("case", MIXED)
def test_mixed(tmp_path, case):
    make, options = MIXED[case]
    check_crashes(make, tmp_path / "run.npz", (6, 33), **options)


def test_trajectories_that_have_ended_stay_ended(tmp_path):
    """One converges, one fails; the others go on, and the statuses are those of a run in one go."""
    x0 = np.column_stack([STARTS[:3, 0], 1 / Bowl().curvature, STARTS[:3, 1]])
    whole = check_crashes(Bowl, tmp_path / "run.npz", (5, 20, 37), x0=x0, eta=0.05, tol=1e-6)
    assert set(whole.status) == {Status.CONVERGED, Status.MAX_ITER}


def test_finished_at_once(tmp_path):
    """Before the first iteration: that is kept as well."""
    whole = check_crashes(
        lambda: LAD(A, REAL), tmp_path / "run.npz", (), penalty=L1(0.02), tol=1e-8
    )
    assert (whole.nit, whole.success) == (0, True)


# ------------------------------------------------------------ ends and budgets


def counted(calls):
    """A function that counts how often it is called."""
    return lambda x: (calls.append(1), Bowl()(x))[1]


def test_a_run_that_has_ended_is_not_run_again(tmp_path):
    path, calls = tmp_path / "run.npz", []
    options = {"eta": 0.3, "checkpoint": path, "on_failure": "ignore"}
    first = minimize(counted([]), START, max_iter=50, **options)
    before = path.read_bytes(), path.stat().st_mtime_ns
    again = minimize(counted(calls), START, max_iter=50, **options)
    assert len(calls) == 1  # to see that it is the same problem
    assert_same_run(again, first)
    np.testing.assert_array_equal(again.history.time, first.history.time)
    fewer = minimize(counted(calls), START, max_iter=20, **options)
    assert fewer.nit == 50  # what is done is done
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    more = minimize(counted(calls), START, max_iter=80, **options)
    assert_same_run(more, minimize(counted(calls), START, max_iter=80, eta=0.3))


def test_another_tolerance_goes_on(tmp_path):
    loss, path = Logistic(A, LABELS, l2=0.1), tmp_path / "run.npz"
    for tol in (1e-2, 1e-4):
        kept = minimize(loss, eta=0.5, tol=tol, checkpoint=path)
        assert_same_run(kept, minimize(loss, eta=0.5, tol=tol))
    assert minimize(loss, eta=0.5, tol=1e-4, max_iter=10**6, checkpoint=path).nit == kept.nit


def test_failures_are_told_again(tmp_path):
    loss, options = (
        LAD(A, REAL),
        {"eta": 0.3, "tol": 1e-12, "max_iter": 20, "checkpoint": tmp_path / "run.npz"},
    )
    with pytest.warns(ConvergenceWarning, match="budget of iterations") as first:
        minimize(loss, **options)
    with pytest.warns(ConvergenceWarning, match="budget of iterations") as second:
        minimize(loss, **options)
    assert str(first[0].message) == str(second[0].message)
    with pytest.raises(ConvergenceError) as caught:
        minimize(loss, **options, on_failure="raise")
    assert caught.value.result.nit == 20


def test_time_counts_from_the_first_start(tmp_path):
    options = {"eta": 0.3, "history": 0, "checkpoint": tmp_path / "run.npz"}

    def slow(now):
        while now.nit == 10 and time.perf_counter() - begin < 0.2:
            pass
        crash_at(15)(now)

    begin = time.perf_counter()
    with pytest.raises(Crash):
        minimize(Bowl(), START, **options, max_time=600.0, every=0.0, callback=slow)
    for _ in range(2):
        result = minimize(Bowl(), START, **options, max_time=0.1)
        assert (result.status, result.nit) == (Status.MAX_TIME, 15)  # 0.2 seconds were used before
    assert minimize(Bowl(), START, **options, max_time=600.0, max_iter=30).nit == 30


@pytest.mark.parametrize("every", [0.0, 0.01, 600.0])
def test_time_between_checkpoints(tmp_path, every):
    path, written = tmp_path / "run.npz", []

    def look(now):
        if path.exists() and path.stat().st_mtime_ns not in written[-1:]:
            written.append(path.stat().st_mtime_ns)
        if now.nit >= 50 and (len(written) > 2 or every > 1):
            raise StopIteration

    begin = time.perf_counter()
    result = minimize(
        LAD(A, REAL),
        eta=0.3,
        max_iter=10**8,
        history=0,
        checkpoint=path,
        every=every,
        callback=look,
    )
    took = time.perf_counter() - begin
    if every == 0.0:
        assert len(written) == result.nit - 1
    else:
        assert len(written) <= took / every
    assert path.exists()


@pytest.mark.parametrize("auto", [False, True])
def test_ctrl_c_is_kept(tmp_path, default_handler, auto):
    path, options = (
        tmp_path / "run.npz",
        {"max_iter": 60, "penalty": L1(0.02), **({} if auto else {"eta": 0.3})},
    )
    whole = minimize(LAD(A, REAL), **options)

    def press(now):
        if now.nit == 25:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(
        Interrupted, match=r"The same call with checkpoint='.*run.npz' resumes from here"
    ) as caught:
        minimize(LAD(A, REAL), **options, checkpoint=path, callback=press)
    assert caught.value.result.nit == 25
    assert_same_run(minimize(LAD(A, REAL), **options, checkpoint=path), whole)


@pytest.mark.parametrize("auto", [False, True])
def test_a_callback_that_stops_goes_on(tmp_path, auto):
    path, options = tmp_path / "run.npz", {"max_iter": 60, **({} if auto else {"eta": 0.3})}

    def stop(now):
        if now.nit == 25:
            raise StopIteration

    first = minimize(LAD(A, REAL), **options, checkpoint=path, callback=stop)
    assert (first.status, first.nit) == (Status.CALLBACK, 25)
    assert_same_run(
        minimize(LAD(A, REAL), **options, checkpoint=path), minimize(LAD(A, REAL), **options)
    )


def test_with_a_state(tmp_path):
    """Budgets then count from where that was."""
    path, state = tmp_path / "run.npz", minimize(LAD(A, REAL), eta=0.3, max_iter=10).state
    whole = minimize(LAD(A, REAL), eta=0.3, max_iter=30, state=state)
    with pytest.raises(Crash):
        minimize(
            LAD(A, REAL),
            eta=0.3,
            max_iter=30,
            state=state,
            checkpoint=path,
            every=0.0,
            callback=crash_at(20),
        )
    rest = minimize(LAD(A, REAL), eta=0.3, max_iter=30, state=state, checkpoint=path)
    assert_same_run(rest, whole)
    assert rest.nit == 40
    with pytest.raises(ValueError, match="began elsewhere, for 'state' is not the same"):
        minimize(LAD(A, REAL), eta=0.3, max_iter=30, checkpoint=path)


# ------------------------------------------------------------ what is refused

OTHERS = {
    "data": (
        {"loss": LAD(A + 1e-6, REAL)},
        "it belongs to another problem: the data of the loss are not the same",
    ),
    "targets": ({"loss": LAD(A, REAL + 1)}, "it belongs to another problem: loss.b"),
    "loss": ({"loss": Logistic(A, LABELS)}, "it belongs to another problem: loss.class"),
    "penalty": ({"penalty": L1(0.03)}, "it belongs to another problem: penalty.l1"),
    "eta": ({"rule": AdaGradDiff(0.31)}, "it belongs to another problem: rule.eta"),
    "rule": ({"rule": AdaGrad(0.3)}, "it belongs to another problem: rule.class"),
    "auto": ({"rule": None}, "it belongs to another problem: rule.class"),
    "start": ({"x0": STARTS[:, 1]}, "its run began elsewhere, for 'x0' is not the same"),
    "no start": ({"x0": None}, "its run began elsewhere, for 'x0' is not the same"),
    "dtype": ({"loss": LAD(A.astype(np.float32), REAL)}, "it has x of dtype float64"),
}


@pairwise(case=OTHERS, ended=[False, True])
def test_other_problems_are_refused(tmp_path, case, ended):
    path = tmp_path / "run.npz"
    run = {"loss": LAD(A, REAL), "penalty": L1(0.02), "rule": AdaGradDiff(0.3), "x0": STARTS[:, 0]}
    stop = None if ended else crash_at(7)
    try:
        minimize(**run, max_iter=10, checkpoint=path, every=0.0, callback=stop)
    except Crash:
        assert not ended
    before = path.read_bytes()
    change, sentence = OTHERS[case]
    with pytest.raises(
        ValueError, match=r"cannot be continued by this call: |its format is"
    ) as caught:
        minimize(**run | change, max_iter=10, checkpoint=path)
    assert sentence in str(caught.value)
    assert "or choose another 'checkpoint'" in str(caught.value)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_what_is_no_path(tmp_path):
    for wrong in (3, object(), "a\0b"):
        with pytest.raises(ValueError, match="'checkpoint' must be the path"):
            minimize(Bowl(), START, eta=0.1, checkpoint=wrong)
    for wrong in (-1.0, "soon", math.nan):
        with pytest.raises(ValueError, match="The 'every' parameter of minimize"):
            minimize(Bowl(), START, eta=0.1, checkpoint=tmp_path / "run.npz", every=wrong)
    with pytest.raises(OSError, match=r"The checkpoint .* cannot be read: Is a directory"):
        minimize(Bowl(), START, eta=0.1, checkpoint=tmp_path)


# ------------------------------------------------------------ disks


def test_a_disk_that_is_full_later(tmp_path):
    """The error says where and what to do, the last good checkpoint stays, and the run goes on from it when there is room."""
    path, whole = tmp_path / "run.npz", minimize(LAD(A, REAL), eta=0.3, max_iter=300)
    with pytest.raises(Crash):
        minimize(
            LAD(A, REAL), eta=0.3, max_iter=300, checkpoint=path, every=0.0, callback=crash_at(50)
        )
    size = path.stat().st_size
    good = (
        "The last good one is unchanged. Make room or choose another 'checkpoint', and call again."
    )
    with (
        at_most(size + 5000),
        pytest.raises(OSError, match="cannot be written: File too large") as caught,
    ):
        minimize(LAD(A, REAL), eta=0.3, max_iter=300, checkpoint=path, every=0.0)
    assert str(caught.value).endswith(good)
    assert str(path) in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]
    assert size <= path.stat().st_size <= size + 5000
    assert_same_run(minimize(LAD(A, REAL), eta=0.3, max_iter=300, checkpoint=path), whole)


def test_what_a_kill_has_left_is_cleared_away(tmp_path):
    (tmp_path / f"run.npz.{'0f' * 8}.partial").write_bytes(b"half of it")
    (tmp_path / "run.npz.notes").write_text("mine")
    minimize(LAD(A, REAL), eta=0.3, max_iter=3, checkpoint=tmp_path / "run.npz")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run.npz", "run.npz.notes"]


def test_it_is_plain_data(tmp_path):
    minimize(
        LAD(A, REAL),
        penalty=L1(0.02),
        tol=1e-6,
        max_iter=50,
        checkpoint=tmp_path / "run.npz",
        on_failure="ignore",
    )
    with np.load(tmp_path / "run.npz", allow_pickle=False) as content:
        header = json.loads(str(content["header"]))
        assert all(content[name].dtype.kind in "biufU" for name in content.files)
    assert header["format"] == "adagrad-diff run 5"
