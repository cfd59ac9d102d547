"""eta="auto" opens with minibatches where samples are many: the same answer, proven, resumed bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from adagrad_diff import L1, LAD, ElasticNet, Interrupted, Logistic, Squared, SquaredHinge, load_state, minimize
from adagrad_diff.solve import opening


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """So that small problems open with minibatches."""
    monkeypatch.setattr(opening, "OPENING_ENTRIES", 1000)
    monkeypatch.setattr(opening, "OPENING_SAMPLES", 1000)
    monkeypatch.setattr(opening, "BATCHES", 60)


def problem(kind=Logistic, **options):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 8)) * np.geomspace(0.01, 100, 8) + 1
    return kind(A, np.where(A[:, 7] / 100 + rng.standard_normal(3000) > 0, 1.0, -1.0), **options)


def unopened(monkeypatch):
    monkeypatch.setattr(opening, "OPENING_SAMPLES", 10**9)


def test_who_opens():
    assert opening.opening(problem()).size == 50
    assert opening.opening(problem(SquaredHinge)) is not None
    assert opening.opening(problem(LAD)) is None  # it has kinks
    assert opening.opening(problem(Squared)) is None  # the finish solves it in one step
    assert opening.opening(Logistic(np.ones((100, 1)), np.ones(100))) is None
    assert opening.opening(Logistic(np.ones((2000, 30)), np.ones(2000))) is None  # too few samples for each coefficient


def test_who_has_no_rows_side_by_side_does_not_open():
    """Rows would have to be copied, all of them, and nobody has asked for that."""
    loss = problem()
    array = loss.A.array
    for A in (np.asfortranarray(array), np.repeat(array, 2, axis=1)[:, :8]):
        assert opening.opening(Logistic(A, loss.b)) is None
    assert opening.opening(Logistic(array[:2000], loss.b[:2000])) is not None


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", [Logistic, SquaredHinge])
@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_the_answer_is_proven_and_the_same(kind, intercept, tol, monkeypatch):
    loss, penalty = problem(kind, intercept=intercept), ElasticNet(1e-3, 1e-3)
    result = minimize(loss, penalty=penalty, tol=tol)
    assert result.success
    assert result.certified
    assert result.gap <= tol * result.fun
    assert result.nit > 0  # it was not finished at once
    assert np.all(np.diff(result.history.passes) >= 1)
    assert result.history.passes[-1] > result.nit + 1
    unopened(monkeypatch)
    full = minimize(loss, penalty=penalty, tol=1e-12)
    assert full.fun - 1e-12 <= result.fun <= full.fun * (1 + 2 * tol)


def test_it_comes_nearer_than_as_many_full_gradients(monkeypatch):
    loss, penalty = problem(intercept=True), L1(1e-3)
    best = minimize(loss, penalty=penalty, tol=1e-12).fun
    opened = minimize(loss, penalty=penalty, max_iter=10)
    unopened(monkeypatch)
    full = minimize(loss, penalty=penalty, max_iter=round(opened.history.passes[-1]))
    assert opened.fun - best < 0.1 * (full.fun - best)


@pytest.mark.parametrize("first", [3, 16, 17, 40])
def test_resume_is_exact(first, tmp_path):
    """In the opening, at its end, and after it."""
    loss, penalty = problem(intercept=True), L1(1e-3)
    whole = minimize(loss, penalty=penalty, max_iter=first + 9)
    part = minimize(loss, penalty=penalty, max_iter=first)
    part.state.save(tmp_path / "state.npz")
    rest = minimize(loss, penalty=penalty, max_iter=9, state=load_state(tmp_path / "state.npz"))
    assert rest.x.tobytes() == whole.x.tobytes()
    assert rest.fun == whole.fun
    assert rest.history.passes.tolist() == whole.history.passes[first:].tolist()


def test_passes_of_the_opening_stay_counted():
    """Each iteration after it is one pass more."""
    loss, penalty = problem(intercept=True), L1(1e-3)
    passes = minimize(loss, penalty=penalty, max_iter=30).history.passes
    rounds = opening.opening(loss).schedule(opening.OPENING_ROUNDS)
    np.testing.assert_allclose(passes, np.append(rounds, rounds[-1] + np.arange(1, 15)))


def test_ctrl_c_in_the_opening_goes_on_exactly():
    loss, penalty = problem(), L1(1e-3)

    def stop(now):
        if now.nit == 5:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        minimize(loss, penalty=penalty, max_iter=20, callback=stop)
    rest = minimize(loss, penalty=penalty, max_iter=20 - caught.value.result.nit, state=caught.value.result.state)
    assert rest.x.tobytes() == minimize(loss, penalty=penalty, max_iter=20).x.tobytes()


def test_a_start_that_is_not_zero_is_finished_at_once():
    loss, penalty = problem(), L1(1e-3)
    near = minimize(loss, penalty=penalty, tol=1e-6).x
    assert minimize(loss, near, penalty, tol=1e-6).nit == 0


def test_an_opening_that_fails_is_followed_by_the_race(monkeypatch):
    """Its one step size may be far too large."""
    loss, penalty = problem(), L1(1e-3)
    coordinates = loss.coordinates()
    monkeypatch.setattr(type(loss), "unit", lambda self: 1e300)
    assert coordinates.unit == 1.0
    result = minimize(loss, penalty=penalty, max_iter=600, on_failure="ignore")
    assert np.isfinite(result.fun)
    assert result.fun <= loss.value_and_grad(np.zeros(8))[0]


def test_a_state_of_an_opening_is_refused_where_there_is_none(monkeypatch):
    loss, penalty = problem(), L1(1e-3)
    state = minimize(loss, penalty=penalty, max_iter=3).state
    unopened(monkeypatch)
    with pytest.raises(ValueError, match="another rule"):
        minimize(loss, penalty=penalty, state=state)
