"""When the finish is tried: at once, during a race, with back-off, in the same way after a stop; and how a try is stopped."""

import os
import signal
import time

import numpy as np
import pytest

from adagrad_diff import L1, LAD, Hinge, Interrupted, Logistic, Ridge, Status, load_state, minimize
from adagrad_diff.finishing import Finisher
from adagrad_diff.finishing.kinked import Kinked
from adagrad_diff.solve import tries
from looping import looped

RNG = np.random.default_rng(0)
A = RNG.standard_normal((300, 12))
B = A[:, 0] - 2 * A[:, 3] + RNG.standard_t(2, 300)
LABELS = np.where(B > 0, 1.0, -1.0)


@pytest.fixture
def nothing_at_once(monkeypatch):
    """No problem is so small that the finish comes before the race."""
    monkeypatch.setattr(tries, "AT_ONCE", -1.0)
    monkeypatch.setattr(tries, "INSTEAD", -1)


@pytest.fixture
def watched(monkeypatch):
    """What every try began with: (its x, whole)."""
    seen, attempt = [], Finisher.attempt

    def watch(self, x, tol, stop, whole=False):
        seen.append((x.copy(), whole))
        return attempt(self, x, tol, stop, whole)

    monkeypatch.setattr(Finisher, "attempt", watch)
    return seen


PROBLEMS = {
    "LAD": (lambda: LAD(A, B, intercept=True), L1(0.02)),
    "hinge": (lambda: Hinge(A, LABELS, intercept=True), Ridge(0.01)),
    "logistic": (lambda: Logistic(A, LABELS), L1(0.01)),
}


# ------------------------------------------------------------ when


def test_small_problems_at_once(watched):
    result = minimize(LAD(A, B), penalty=L1(0.02), tol=1e-6)
    assert [whole for _, whole in watched] == [True]
    assert (result.nit, result.finish.tries) == (0, 1)


@pytest.mark.parametrize("case", PROBLEMS)
def test_others_during_the_race(case, watched, nothing_at_once):
    make, penalty = PROBLEMS[case]
    result = minimize(make(), penalty=penalty, tol=1e-10, max_iter=5000)
    assert tries.FIRST_TRY <= result.nit < 5000
    assert result.finish.done
    assert result.finish.tries == len(watched) >= 1
    assert not any(whole for _, whole in watched)
    assert result.gap <= 1e-10 * result.fun


def test_warm_starts_at_once(watched, nothing_at_once):
    loss = LAD(A, B, intercept=True)
    cold = minimize(loss, penalty=L1(0.02), tol=1e-10)
    assert cold.nit > 0
    watched.clear()
    warm = minimize(loss, cold.x, L1(0.019), tol=1e-10)
    assert warm.nit == 0
    np.testing.assert_array_equal(watched[0][0], cold.x)
    constant = minimize(loss, np.r_[np.zeros(12), 0.3], L1(0.019), tol=1e-10)  # an intercept alone tells nothing
    assert constant.nit > 0
    assert warm.fun == pytest.approx(constant.fun, rel=1e-9)


@pytest.mark.parametrize("seconds", [1e-4, 0.003, 0.02])
def test_failed_tries_are_backed_off(seconds, monkeypatch, nothing_at_once):
    """By the model, they never take more than a tenth of the run before the next one, or before an unsettled one is over."""
    began, n = [], [0]

    def attempt(self, x, tol, stop, whole=False):
        began.append(n[0])
        self.report.tries += 1
        return False

    monkeypatch.setattr(Finisher, "attempt", attempt)
    monkeypatch.setattr(Kinked, "cost", lambda self: seconds)
    monkeypatch.setattr(Kinked, "spent", seconds, raising=False)
    monkeypatch.setattr(Kinked, "guess", lambda self, x: seconds)

    def count(now):  # comes after the try of its iteration
        n[0] = now.nit

    result = minimize(LAD(A, B), penalty=L1(0.02), tol=0.0, max_iter=3000, callback=count, on_failure="ignore")
    iteration = tries.PER_ITERATION + tries.PER_ENTRY * A.size
    assert began[-1] == result.nit  # the last chance
    during = began[:-1]
    assert len(during) >= 1
    for k, at in enumerate(during):
        assert k * seconds <= tries.PART * (at + 1) * iteration
        assert at + 1 >= tries.FIRST_TRY
    assert np.isfinite(result.fun)


def test_a_failed_try_is_the_races(nothing_at_once, watched):
    """What it has found is not lost, although it does not do."""
    loss = LAD(A, B, intercept=True)
    best = minimize(loss, penalty=L1(0.02), tol=1e-10).fun
    result = minimize(loss, penalty=L1(0.02), tol=0.0, max_iter=100, on_failure="ignore")
    alone = minimize(loss, penalty=L1(0.02), tol=0.0, max_iter=100, on_failure="ignore", finish=False)
    assert not result.success
    assert result.finish.failed > 0
    assert result.fun <= best * (1 + 1e-12) < alone.fun
    assert result.gap <= 1e-10 * result.fun


# ------------------------------------------------------------ stops and goes on


@pytest.mark.parametrize("case", PROBLEMS)
def test_goes_on_as_if_it_had_never_stopped(case, tmp_path, nothing_at_once):
    """To the last bit, tries before and after included."""
    make, penalty = PROBLEMS[case]
    run = {"penalty": penalty, "tol": 0.0, "on_failure": "ignore", "history": 0}
    kept = []

    def keep(now):
        if now.nit in (10, 64, 150, 256):
            now.state.save(tmp_path / f"{now.nit}.npz")
            kept.append(now.nit)

    whole = minimize(make(), **run, max_iter=600, callback=keep)
    assert kept == [10, 64, 150, 256]
    assert whole.finish.tries >= 3
    for n in kept:
        rest = minimize(make(), **run, max_iter=600 - n, state=load_state(tmp_path / f"{n}.npz"))
        for name in ("x", "fun", "nit", "nfev", "status", "gap", "dual_point"):
            np.testing.assert_array_equal(rest[name], whole[name], err_msg=f"{name} after {n}")
        notes = (result.state.notes for result in (rest, whole))
        clocks = ("finish.seconds", "finish.failed")
        one, other = ({k: v for k, v in found.items() if k.startswith("finish.") and k not in clocks} for found in notes)
        assert one.keys() == other.keys() >= {"finish.x", "finish.slopes", "finish.rounds"}
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name], err_msg=f"{name} after {n}")
        assert (rest.finish.tries, rest.finish.rounds) == (whole.finish.tries, whole.finish.rounds)


def test_a_run_that_was_finished_is_finished_again(tmp_path, nothing_at_once):
    loss = LAD(A, B, intercept=True)
    first = minimize(loss, penalty=L1(0.02), tol=1e-6)
    first.state.save(tmp_path / "run.npz")
    second = minimize(loss, penalty=L1(0.02), tol=1e-10, max_iter=1000, state=load_state(tmp_path / "run.npz"))
    assert second.success
    assert second.gap <= 1e-10 * second.fun


@pytest.mark.parametrize("when", ["at once", "in the race"])
def test_ctrl_c_during_a_try(when, monkeypatch, default_handler, request):
    if when == "in the race":
        request.getfixturevalue("nothing_at_once")
    small, calls = Kinked._small, []

    def pressed(self, now, K, S, stop):
        if not calls:
            os.kill(os.getpid(), signal.SIGINT)
        calls.append(stop())
        return small(self, now, K, S, stop)

    monkeypatch.setattr(Kinked, "_small", pressed)
    loss = LAD(A, B, intercept=True)
    with pytest.raises(Interrupted) as caught:
        minimize(loss, penalty=L1(0.02), tol=1e-10, max_iter=5000)
    result = caught.value.result
    assert calls == [True]
    assert result.status == Status.INTERRUPTED
    assert np.isfinite(result.fun)
    assert result.nit == 0 or when == "in the race"
    done = minimize(loss, penalty=L1(0.02), tol=1e-10, max_iter=5000, state=result.state)
    assert done.success
    assert done.fun <= result.fun * (1 + 1e-12)


@looped("limit", [1e-9, 0.03])
def test_no_time_for_a_try(limit, monkeypatch):
    small = Kinked._small

    def slow(self, now, K, S, stop):
        time.sleep(0.05)
        return small(self, now, K, S, stop)

    with monkeypatch.context() as patch:
        patch.setattr(Kinked, "_small", slow)
        begin = time.perf_counter()
        result = minimize(LAD(A, B), penalty=L1(0.02), tol=1e-12, max_iter=10**6, max_time=limit, on_failure="ignore")
        assert time.perf_counter() - begin < 2.0
    assert result.status == Status.MAX_TIME
    assert not result.finish.done
    assert "no time" in result.finish.reason
    assert result.fun <= np.abs(B).mean()
