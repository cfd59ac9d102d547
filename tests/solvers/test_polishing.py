"""When runs without a step size are polished, what they keep of it, and how polishing is interrupted."""

import signal

import numpy as np
import pytest

from adagrad_diff import L1, LAD, Interrupted, Logistic, Status, load_state, minimize
from own_sources import Waves

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3000, 300))
B = A[:, 0] - 2 * A[:, 3] + RNG.standard_t(2, 3000)
LARGE, SMALL = LAD(A, B, intercept=True), LAD(A[:300, :12], B[:300], intercept=True)
PENALTY = L1(0.02)


def test_small_problems_at_once_and_large_ones_after_a_search():
    small = minimize(SMALL, penalty=PENALTY, tol=1e-9)
    assert (small.nit, small.finish.tries, small.finish.done) == (0, 1, True)
    large = minimize(LARGE, penalty=PENALTY, tol=1e-9)
    assert large.nit > 0
    assert large.finish.done
    assert large.finish.tries >= 1
    for result in (small, large):
        assert result.success
        assert result.gap <= 1e-9 * result.fun
    warm = minimize(LARGE, large.x, L1(0.019), tol=1e-9)
    assert (warm.nit, warm.success) == (0, True)
    constant = minimize(
        LARGE, np.r_[np.zeros(300), 0.3], L1(0.019), tol=1e-9
    )  # an intercept alone is no warm start
    assert constant.nit > 0
    assert warm.fun == pytest.approx(constant.fun, rel=1e-9)


def test_without_polishing():
    result = minimize(SMALL, penalty=PENALTY, tol=1e-2, max_iter=5000, finish=False)
    assert result.nit > 0
    assert result.success


def test_the_search_keeps_the_iterate_of_an_unsuccessful_attempt():
    best = minimize(SMALL, penalty=PENALTY, tol=1e-10).fun
    polished, alone = (
        minimize(SMALL, penalty=PENALTY, tol=0.0, max_iter=100, on_failure="ignore", finish=finish)
        for finish in (True, False)
    )
    assert not polished.success
    assert polished.finish.failed > 0
    assert polished.fun <= best * (1 + 1e-12) < alone.fun
    assert polished.gap <= 1e-10 * polished.fun


def test_a_stricter_tolerance_later(tmp_path):
    first = minimize(LARGE, penalty=PENALTY, tol=1e-6)
    first.state.save(tmp_path / "run.npz")
    second = minimize(
        LARGE, penalty=PENALTY, tol=1e-10, max_iter=1000, state=load_state(tmp_path / "run.npz")
    )
    assert second.success
    assert second.gap <= 1e-10 * second.fun


def test_no_time_for_polishing():
    result = minimize(
        LARGE, penalty=PENALTY, tol=1e-12, max_iter=10**6, max_time=1e-9, on_failure="ignore"
    )
    assert result.status == Status.MAX_TIME
    assert not result.finish.done
    assert "no time" in result.finish.reason
    assert result.fun <= np.abs(B).mean()


class Pressed(Waves):
    """Ctrl-C when a block is read for the k-th time."""

    at, reads = 0, 0

    def block(self, k):
        Pressed.reads += 1
        if Pressed.reads == Pressed.at:
            signal.raise_signal(signal.SIGINT)
        return super().block(k)


@pytest.mark.parametrize("kind", [LAD, Logistic])
def test_ctrl_c_at_any_time(kind, default_handler):
    """Before the first iteration, between iterations and during polishing: the run stops and can be continued."""
    dense = Waves()
    scores = np.concatenate([dense.block(k) for k in range(4)]) @ np.arange(5.0) + np.sin(
        np.arange(60.0) ** 2
    )

    def run(at, **options):
        Pressed.at, Pressed.reads = at, 0
        loss = kind(Pressed(), scores if kind is LAD else np.sign(scores - scores.mean()))
        return minimize(loss, penalty=PENALTY, tol=1e-9, max_iter=3000, **options)

    whole = run(0)
    reads = Pressed.reads
    assert whole.success
    assert whole.finish.done
    interrupted = 0
    for at in np.unique(np.linspace(1, reads, 12).astype(int)):
        with pytest.raises(KeyboardInterrupt) as caught:
            run(at)
        if isinstance(caught.value, Interrupted):
            interrupted += 1
            result = caught.value.result
            if result is not None:  # Ctrl-C came after the preparations
                assert np.isfinite(result.fun)
            rest = run(0, state=result and result.state)
            assert rest.success
            assert rest.fun == pytest.approx(whole.fun, rel=1e-8)
    assert interrupted > 6
