"""`minimize(checkpoint=...)`: interrupted anywhere and called again, a run is the one in one go, bit for bit."""

import dataclasses
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
    Box,
    ConvergenceError,
    ConvergenceWarning,
    Hinge,
    Interrupted,
    Logistic,
    Multinomial,
    Quadratic,
    Ridge,
    Status,
    minimize,
    scipy_method,
)
from adagrad_diff.solve import tries
from damage import at_most
from looping import looped
from rule_zoo import KINDS, made
from user_losses import Bowl, data

A, REAL, LABELS, CLASSES = data(samples=60, features=6)
START = [1.0, 2.0, 3.0]
STARTS = np.random.default_rng(1).standard_normal((6, 3))
LEAVE_OUT = {"history", "state", "finish", "rule"}
BUFFERS = ("oracle", "x_prev", "g_prev", "step", "pull", "scale", "elsewhere", "turning")  # only a run needs them


@pytest.fixture(autouse=True)
def disk(monkeypatch):
    """These tests write thousands of files: none of them has to survive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


class Crash(Exception):
    """The process ends here."""


def crash_at(n):
    def callback(intermediate_result):
        if np.max(intermediate_result.nit) == n:
            raise Crash

    return callback


def assert_equal(one, other, where=""):
    """Whatever these are: bits, dtypes, names. Clocks do not count."""
    if dataclasses.is_dataclass(one):
        one, other = ({f.name: getattr(x, f.name) for f in dataclasses.fields(x)} for x in (one, other))
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for name in one:
            if name not in ("time", "finish.seconds", "finish.failed", *BUFFERS):
                assert_equal(one[name], other[name], f"{where}.{name}")
    else:
        np.testing.assert_array_equal(one, other, err_msg=where)
        assert np.asarray(one).dtype == np.asarray(other).dtype, where


def assert_same(one, other):
    assert one.keys() == other.keys()
    assert_equal({k: v for k, v in one.items() if k not in LEAVE_OUT}, {k: v for k, v in other.items() if k not in LEAVE_OUT})
    assert_equal(one.history, other.history, "history")
    assert_equal(one.state, other.state, "state")
    if "finish" in one:
        for name in ("done", "tries", "rounds", "samples", "coefficients", "reason"):
            assert getattr(one.finish, name) == getattr(other.finish, name), name
        assert repr(one.rule) == repr(other.rule)


def check_crashes(make, path, at, **options):
    """The run in one go, and one that crashes after the k-th iterations of `at`, with a checkpoint after every iteration."""
    path.unlink(missing_ok=True)
    options = {"max_iter": 60, "on_failure": "ignore", "history": 2, **options}
    whole = minimize(make(), **options)
    for n in at:
        with pytest.raises(Crash):
            minimize(make(), **options, checkpoint=path, every=0.0, callback=crash_at(n))
    rest = minimize(make(), **options, checkpoint=path)
    assert_same(rest, whole)
    again = minimize(make(), **options, checkpoint=path)
    assert_same(again, whole)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return whole


# ------------------------------------------------------------ rules x trajectories x dtypes


@looped("kind", KINDS)
@looped("dtype", [np.float64, np.float32])
@looped("trajectories", [False, True])
def test_every_rule(tmp_path, kind, dtype, trajectories):
    loss = LAD if kind.__name__ not in ("AdaPG", "FISTA") else Logistic
    target = REAL if loss is LAD else LABELS
    options = {"rule": made(kind), "penalty": L1(0.02)}
    if trajectories:
        options["x0"] = STARTS.astype(dtype)
    check_crashes(lambda: loss(A.astype(dtype), target), tmp_path / "run.npz", (6, 13), max_iter=18, **options)


MIXED = {
    "several etas": (lambda: LAD(A, REAL), {"rule": AdaGradDiff([0.1, 0.3, 1.0]), "x0": STARTS}),
    "with gaps": (lambda: LAD(A, REAL), {"eta": 0.3, "penalty": L1(0.05), "stop": "gap", "tol": 1e-9}),
    "smooth, with gaps": (lambda: Logistic(A, LABELS), {"eta": 0.3, "penalty": L1(0.05), "stop": "gap", "tol": 1e-12}),
    "matrices": (lambda: Multinomial(A, CLASSES, intercept=True), {"rule": AdaGrad(0.3, blocks="row"), "penalty": L1(0.01)}),
    "a function": (Bowl, {"eta": 0.3, "x0": START}),
    "a schedule": (lambda: LAD(A, REAL), {"rule": AdaGradDiff(lambda n: 1.0 / np.sqrt(n))}),
    "no record": (lambda: LAD(A, REAL), {"eta": 0.3, "history": 0}),
    "auto": (lambda: LAD(A, REAL), {"penalty": L1(0.02)}),
    "auto, single": (lambda: Hinge(A.astype(np.float32), LABELS, intercept=True), {"penalty": Ridge(0.02)}),
    "auto, function": (Bowl, {"x0": START}),
    "auto, subgradient": (lambda: Logistic(A, LABELS), {"penalty": L1(0.02), "stop": "subgradient", "tol": 1e-13}),
    "auto, matrices": (lambda: Multinomial(A, CLASSES, intercept=True), {"penalty": L1(0.01)}),
}


@looped("case", MIXED)
def test_mixed(tmp_path, case):
    make, options = MIXED[case]
    check_crashes(make, tmp_path / "run.npz", (6, 33), **options)


def test_trajectories_that_have_ended_stay_ended(tmp_path):
    """One converges, one fails; the others go on, and the statuses are those of a run in one go."""
    x0 = np.column_stack([STARTS[:3, 0], 1 / Bowl().curvature, STARTS[:3, 1]])
    whole = check_crashes(Bowl, tmp_path / "run.npz", (5, 20, 37), x0=x0, eta=0.05, tol=1e-6)
    assert set(whole.status) == {Status.CONVERGED, Status.MAX_ITER}
    loss = lambda: Logistic(A, LABELS, l2=0.3)  # noqa: E731
    whole = check_crashes(loss, tmp_path / "run.npz", (5, 7, 30, 199), eta=[0.02, 0.5, 1.0], tol=1e-4, max_iter=200)
    assert set(whole.status) == {Status.CONVERGED, Status.MAX_ITER}


def test_what_has_ended_is_not_judged_again(tmp_path, monkeypatch):
    from adagrad_diff.solve.driver import Watch

    x0 = np.column_stack([STARTS[:3, 0], 1 / Bowl().curvature, STARTS[:3, 1]])
    options = {"x0": x0, "eta": 0.05, "tol": 1e-6, "max_iter": 60, "checkpoint": tmp_path / "run.npz", "on_failure": "ignore"}
    with pytest.raises(Crash):
        minimize(Bowl(), **options, every=0.0, callback=crash_at(20))
    monkeypatch.setattr(Watch, "_judge", lambda self, state, tol: (np.zeros(state.f.shape, bool), False))
    result = minimize(Bowl(), **options)
    assert result.status.tolist() == [Status.MAX_ITER, Status.CONVERGED, Status.MAX_ITER]
    assert result.nit.tolist() == [60, 1, 60]


FINISHED = {
    "LAD": (lambda: LAD(A, REAL, intercept=True), {"penalty": L1(0.02)}),
    "hinge": (lambda: Hinge(A, LABELS), {"penalty": Ridge(0.01)}),
    "logistic": (lambda: Logistic(A, LABELS), {"penalty": L1(0.01)}),
    "quadratic": (lambda: Quadratic(A.T @ A / 60 + 0.1 * np.eye(6), A.T @ REAL / 60), {"penalty": Box(-0.1, 0.1)}),
}


@looped("case", FINISHED)
@looped("tol", [0.0, 1e-9])
def test_races_certificates_and_tries(tmp_path, monkeypatch, case, tol):
    """What races, certificates and failed tries of the finish remember is part of it."""
    make, options = FINISHED[case]
    with monkeypatch.context() as patch:
        patch.setattr(tries, "AT_ONCE", -1.0)
        patch.setattr(tries, "INSTEAD", -1)
        whole = minimize(make(), **options, tol=tol, max_iter=140, on_failure="ignore")
        at = [n for n in (10, 65, 130) if n < whole.nit]
        whole = check_crashes(make, tmp_path / "run.npz", at, tol=tol, max_iter=140, **options)
        if not tol:  # the last look and the last try of a run that had ended are not those of one that goes on
            path, options = tmp_path / "more.npz", {**options, "on_failure": "ignore", "tol": tol, "history": 2}
            path.unlink(missing_ok=True)
            for n in (30, 70, 140):
                more = minimize(make(), **options, max_iter=n, checkpoint=path)
            assert_same(more, whole)
            path.unlink()
    assert whole.success if tol else whole.finish.tries >= 1


def test_finished_at_once(tmp_path):
    """Before the first iteration: that is kept as well."""
    whole = check_crashes(lambda: LAD(A, REAL), tmp_path / "run.npz", (), penalty=L1(0.02), tol=1e-8)
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
    assert_same(again, first)
    assert_equal(again.history.time, first.history.time)
    fewer = minimize(counted(calls), START, max_iter=20, **options)
    assert fewer.nit == 50  # what is done is done
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    more = minimize(counted(calls), START, max_iter=80, **options)
    assert_same(more, minimize(counted(calls), START, max_iter=80, eta=0.3))


def test_another_tolerance_goes_on(tmp_path):
    loss, path = Logistic(A, LABELS, l2=0.1), tmp_path / "run.npz"
    for tol in (1e-2, 1e-4):
        kept = minimize(loss, eta=0.5, tol=tol, checkpoint=path)
        assert_same(kept, minimize(loss, eta=0.5, tol=tol))
    assert minimize(loss, eta=0.5, tol=1e-4, max_iter=10**6, checkpoint=path).nit == kept.nit


def test_failures_are_told_again(tmp_path):
    loss, options = LAD(A, REAL), {"eta": 0.3, "tol": 1e-12, "max_iter": 20, "checkpoint": tmp_path / "run.npz"}
    with pytest.warns(ConvergenceWarning, match="budget of iterations") as first:
        minimize(loss, **options)
    with pytest.warns(ConvergenceWarning, match="budget of iterations") as second:
        minimize(loss, **options)
    assert str(first[0].message) == str(second[0].message)
    with pytest.raises(ConvergenceError) as caught:
        minimize(loss, **options, on_failure="raise")
    assert caught.value.result.nit == 20


def test_time_counts_from_the_first_start(tmp_path):
    path = tmp_path / "run.npz"
    options = {"eta": 0.3, "max_iter": 10**8, "history": 0, "checkpoint": path}
    slow = lambda now: time.sleep(0.01) or crash_at(15)(now)  # noqa: E731
    with pytest.raises(Crash):
        minimize(Bowl(), START, **options, max_time=10.0, every=0.0, callback=slow)
    begin = time.perf_counter()
    result = minimize(Bowl(), START, **options, max_time=0.1)
    assert (result.status, result.nit) == (Status.MAX_TIME, 15)  # one iteration tells; 0.14 seconds had been spent
    assert time.perf_counter() - begin < 0.1
    assert minimize(Bowl(), START, **options, max_time=0.1).nit == result.nit
    assert minimize(Bowl(), START, **options, max_time=0.5).nit > result.nit


def test_the_clock_decides_when_to_write(tmp_path, monkeypatch):
    from adagrad_diff.solve.keeping import Keeper

    moments, keep = [], Keeper.keep
    monkeypatch.setattr(Keeper, "keep", lambda self, *args: (moments.append(time.perf_counter()), keep(self, *args)))
    slow = lambda now: time.sleep(0.002)  # noqa: E731
    minimize(LAD(A, REAL), eta=0.3, max_iter=100, checkpoint=tmp_path / "run.npz", every=0.05, callback=slow)
    assert 2 < len(moments) < 20
    assert min(np.diff(moments[:-1])) >= 0.05  # the last one is that of the end
    moments.clear()
    minimize(LAD(A, REAL), eta=0.3, max_iter=100, checkpoint=tmp_path / "other.npz")
    assert len(moments) == 1


@pytest.mark.parametrize("auto", [False, True])
def test_ctrl_c_is_kept(tmp_path, default_handler, auto):
    path, options = tmp_path / "run.npz", {"max_iter": 60, "penalty": L1(0.02), **({} if auto else {"eta": 0.3})}
    whole = minimize(LAD(A, REAL), **options)

    def press(now):
        if now.nit == 25:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match=r"The same call with checkpoint='.*run.npz' goes on from here") as caught:
        minimize(LAD(A, REAL), **options, checkpoint=path, callback=press)
    assert caught.value.result.nit == 25
    assert_same(minimize(LAD(A, REAL), **options, checkpoint=path), whole)


@pytest.mark.parametrize("auto", [False, True])
def test_a_callback_that_stops_goes_on(tmp_path, auto):
    path, options = tmp_path / "run.npz", {"max_iter": 60, **({} if auto else {"eta": 0.3})}

    def stop(now):
        if now.nit == 25:
            raise StopIteration

    first = minimize(LAD(A, REAL), **options, checkpoint=path, callback=stop)
    assert (first.status, first.nit) == (Status.CALLBACK, 25)
    assert_same(minimize(LAD(A, REAL), **options, checkpoint=path), minimize(LAD(A, REAL), **options))


def test_with_a_state(tmp_path):
    """Budgets then count from where that was."""
    path, state = tmp_path / "run.npz", minimize(LAD(A, REAL), eta=0.3, max_iter=10).state
    whole = minimize(LAD(A, REAL), eta=0.3, max_iter=30, state=state)
    with pytest.raises(Crash):
        minimize(LAD(A, REAL), eta=0.3, max_iter=30, state=state, checkpoint=path, every=0.0, callback=crash_at(20))
    rest = minimize(LAD(A, REAL), eta=0.3, max_iter=30, state=state, checkpoint=path)
    assert_same(rest, whole)
    assert rest.nit == 40
    with pytest.raises(ValueError, match="began elsewhere, for 'state' is not the same"):
        minimize(LAD(A, REAL), eta=0.3, max_iter=30, checkpoint=path)


def test_through_scipy(tmp_path):
    import scipy.optimize

    def solve(callback=None, **options):
        f = lambda x: (((x - 3.0) ** 2).sum(), 2.0 * (x - 3.0))  # noqa: E731
        options |= {"eta": 0.5, "maxiter": 50}
        return scipy.optimize.minimize(f, [0.0, 0.0], jac=True, method=scipy_method, options=options, callback=callback)

    whole, kept = solve(), {"checkpoint": tmp_path / "run.npz", "every": 0.0}
    with pytest.raises(Crash):
        solve(crash_at(20), **kept)
    assert np.array_equal(solve(**kept).x, whole.x)


# ------------------------------------------------------------ what is refused

OTHERS = {
    "data": ({"loss": LAD(A + 1e-6, REAL)}, "it belongs to another problem: the data of the loss are not the same"),
    "targets": ({"loss": LAD(A, REAL + 1)}, "it belongs to another problem: loss.b"),
    "loss": ({"loss": Logistic(A, LABELS)}, "it belongs to another problem: loss.class"),
    "penalty": ({"penalty": L1(0.03)}, "it belongs to another problem: penalty.l1"),
    "eta": ({"rule": AdaGradDiff(0.31)}, "it belongs to another problem: rule.eta"),
    "rule": ({"rule": AdaGrad(0.3)}, "it belongs to another problem: rule.class"),
    "auto": ({"rule": None}, "it belongs to another problem: rule"),
    "start": ({"x0": STARTS[:, 1]}, "its run began elsewhere, for 'x0' is not the same"),
    "no start": ({"x0": None}, "its run began elsewhere, for 'x0' is not the same"),
    "dtype": ({"loss": LAD(A.astype(np.float32), REAL)}, "it has x of dtype float64"),
}


@looped("case", OTHERS)
@looped("ended", [False, True])
def test_other_problems_are_refused(tmp_path, case, ended):
    path = tmp_path / "run.npz"
    path.unlink(missing_ok=True)
    run = {"loss": LAD(A, REAL), "penalty": L1(0.02), "rule": AdaGradDiff(0.3), "x0": STARTS[:, 0]}
    stop = None if ended else crash_at(7)
    try:
        minimize(**run, max_iter=10, checkpoint=path, every=0.0, callback=stop)
    except Crash:
        assert not ended
    before = path.read_bytes()
    change, sentence = OTHERS[case]
    with pytest.raises(ValueError, match="cannot be continued by this call: ") as caught:
        minimize(**run | change, max_iter=10, checkpoint=path)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith("or choose another 'checkpoint'; nothing was changed in this one.")
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


def test_nothing_is_computed_where_nothing_can_be_written(tmp_path):
    calls = []
    with pytest.raises(OSError, match=r"The checkpoint .*run.npz cannot be written: .*\. There is none\. Make room or choose"):
        minimize(counted(calls), START, eta=0.3, checkpoint=tmp_path / "missing" / "run.npz")
    assert not calls


def test_a_disk_that_is_full_later(tmp_path):
    """The error says where and what to do, the last good checkpoint stays, and the run goes on from it when there is room."""
    path, whole = tmp_path / "run.npz", minimize(LAD(A, REAL), eta=0.3, max_iter=2000)
    with pytest.raises(Crash):
        minimize(LAD(A, REAL), eta=0.3, max_iter=2000, checkpoint=path, every=0.0, callback=crash_at(50))
    size = path.stat().st_size
    good = "The last good one is unchanged. Make room or choose another 'checkpoint', and call again."
    with at_most(size + 5000), pytest.raises(OSError, match="cannot be written: File too large") as caught:
        minimize(LAD(A, REAL), eta=0.3, max_iter=2000, checkpoint=path, every=0.0)
    assert str(caught.value).endswith(good)
    assert str(path) in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]
    assert size <= path.stat().st_size <= size + 5000
    assert_same(minimize(LAD(A, REAL), eta=0.3, max_iter=2000, checkpoint=path), whole)


def test_what_a_kill_has_left_is_cleared_away(tmp_path):
    (tmp_path / f"run.npz.{'0f' * 8}.partial").write_bytes(b"half of it")
    (tmp_path / "run.npz.notes").write_text("mine")
    minimize(LAD(A, REAL), eta=0.3, max_iter=3, checkpoint=tmp_path / "run.npz")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run.npz", "run.npz.notes"]


def test_it_is_plain_data(tmp_path):
    minimize(LAD(A, REAL), penalty=L1(0.02), tol=1e-6, max_iter=50, checkpoint=tmp_path / "run.npz", on_failure="ignore")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as content:
        header = json.loads(str(content["header"]))
        assert all(content[name].dtype.kind in "biufU" for name in content.files)
    assert header["format"] == "adagrad-diff checkpoint 2"
