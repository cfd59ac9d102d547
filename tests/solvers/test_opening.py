"""Without a step size, a run on many samples starts with minibatches: the answer is certified and resumes exactly."""

import numpy as np
import pytest

from adagrad_diff import L1, LAD, Interrupted, Logistic, load_state, minimize

PENALTY = L1(1e-3)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100_000, 50)) * np.geomspace(
        0.1, 10, 50
    )  # the smallest number of entries that has an opening
    return A, np.where(A[:, 25] + rng.standard_normal(100_000) > 0, 1.0, -1.0)


@pytest.fixture(scope="module")
def loss(data):
    return Logistic(*data, intercept=True)


def test_the_answer_is_certified_and_the_same(data, loss):
    result = minimize(loss, penalty=PENALTY, tol=1e-4)
    assert result.success
    assert result.certified
    assert result.gap <= 1e-4 * result.fun
    assert result.nit > 0
    assert np.all(np.diff(result.history.passes) >= 1)
    assert result.history.passes[-1] > result.nit + 1.5
    A, b = data
    columns = minimize(
        Logistic(np.asfortranarray(A), b, intercept=True), penalty=PENALTY, tol=1e-4
    )  # without minibatches
    assert abs(result.fun - columns.fun) <= result.gap + columns.gap


def test_only_smooth_losses_of_many_samples(data):
    A, b = data
    for other in (LAD(A, b), Logistic(A[:20_000], b[:20_000])):
        passes = minimize(other, penalty=PENALTY, max_iter=3).history.passes
        np.testing.assert_array_equal(np.diff(passes), 1.0)


@pytest.mark.parametrize("first", [3, 17])
def test_resume_is_exact(first, loss, tmp_path):
    """Within the opening and after it. Each iteration after the opening is one pass."""
    whole = minimize(loss, penalty=PENALTY, max_iter=20)
    minimize(loss, penalty=PENALTY, max_iter=first).state.save(tmp_path / "state.npz")
    rest = minimize(
        loss, penalty=PENALTY, max_iter=20 - first, state=load_state(tmp_path / "state.npz")
    )
    assert rest.x.tobytes() == whole.x.tobytes()
    assert rest.fun == whole.fun
    assert rest.history.passes.tolist() == whole.history.passes[first:].tolist()
    np.testing.assert_allclose(np.diff(whole.history.passes)[-3:], 1.0)


def test_ctrl_c_in_the_opening(loss):
    def stop(now):
        if now.nit == 5:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        minimize(loss, penalty=PENALTY, max_iter=12, callback=stop)
    rest = minimize(loss, penalty=PENALTY, max_iter=7, state=caught.value.result.state)
    assert rest.x.tobytes() == minimize(loss, penalty=PENALTY, max_iter=12).x.tobytes()
