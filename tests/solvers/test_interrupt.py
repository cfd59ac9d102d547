"""Ctrl-C leaves as `Interrupted`, which carries a result whose state continues exactly. Nothing is swallowed."""

import signal

import numpy as np
import pytest

from adagrad_diff import L1, LAD, AdaGrad, AdaGradDiff, Interrupted, Status, minimize
from user_losses import Bowl, data, interrupt

A, REAL, LABELS, CLASSES = data()
START = np.array([1.0, -2.0, 3.0])


def press_ctrl_c(f, g):
    signal.raise_signal(signal.SIGINT)
    return f, g


def interrupted(*args, **options):
    """The result of a run that is interrupted."""
    with pytest.raises(Interrupted) as caught:
        minimize(*args, **options)
    assert isinstance(caught.value, KeyboardInterrupt)
    result = caught.value.result
    ended = (
        ""
        if np.any(result.status == Status.INTERRUPTED)
        else "Ctrl-C came while the run was ending. "
    )
    assert str(caught.value) == ended + result.message
    return result


def assert_continues(result, x0, rule, penalty=None):
    """`result` was interrupted after some iterations: it is what they give, and goes on as if nothing had happened."""
    so_far, whole = (
        minimize(Bowl(), x0, penalty, rule, max_iter=n) for n in (np.max(result.nit), 50)
    )
    for name in ("x", "x_avg", "x_best", "fun", "fun_best", "jac", "nit", "nfev"):
        assert np.array_equal(result[name], so_far[name]), name
    assert np.array_equal(result.state.memory["total"], so_far.state.memory["total"])
    unknown = np.isnan(result.subgradient_norm)  # is fine, as long as it is said
    np.testing.assert_array_equal(
        np.where(unknown, so_far.subgradient_norm, result.subgradient_norm), so_far.subgradient_norm
    )
    assert np.array_equal(result.history.objective, so_far.history.objective)
    rest = minimize(
        Bowl(), penalty=penalty, rule=rule, max_iter=50 - np.max(result.nit), state=result.state
    )
    for name in ("x", "x_avg", "x_best", "fun", "nit"):
        assert np.array_equal(rest[name], whole[name]), name
    assert np.array_equal(rest.state.memory["total"], whole.state.memory["total"])


@pytest.mark.parametrize(
    ("rule", "call"),
    [(AdaGradDiff(0.3), 2), (AdaGradDiff(0.3), 3), (AdaGrad(0.3, blocks="all"), 20)],
)
def test_interrupted_inside_the_loss(rule, call):
    """Call k evaluates x^k: iteration k - 1 is not completed."""
    result = interrupted(Bowl(at=call, fault=interrupt), START, rule=rule, on_failure="raise")
    assert (result.status, result.success, result.nit) == (Status.INTERRUPTED, False, call - 2)
    assert "state=result.state" in result.message
    assert_continues(result, START, rule)


def test_interrupted_inside_the_penalty():
    class Slow:
        accepts, calls = "diagonal", 0

        def value(self, x):
            return 0.0

        def prox(self, z, step):
            self.calls += 1
            if self.calls == 7:
                z[:] = np.nan  # what is half done is forgotten
                raise KeyboardInterrupt
            return z

    result = interrupted(Bowl(), START, Slow(), AdaGradDiff(0.3))
    assert (result.status, result.nit) == (Status.INTERRUPTED, 6)
    Slow.calls = 7  # no more
    assert_continues(result, START, AdaGradDiff(0.3), Slow())


def test_interrupted_inside_the_callback():
    def callback(intermediate_result):
        if intermediate_result.nit == 9:
            raise KeyboardInterrupt

    result = interrupted(Bowl(), START, eta=0.3, callback=callback)
    assert (result.status, result.success, result.nit) == (Status.INTERRUPTED, False, 9)
    assert_continues(result, START, AdaGradDiff(0.3))


@pytest.mark.parametrize("call", [2, 20])
def test_a_signal_discards_the_iteration_under_way(call, default_handler):
    result = interrupted(Bowl(at=call, fault=press_ctrl_c), START, eta=0.3)
    assert (result.status, result.success, result.nit) == (Status.INTERRUPTED, False, call - 2)
    assert signal.getsignal(signal.SIGINT) is default_handler
    assert_continues(result, START, AdaGradDiff(0.3))


def test_signal_when_the_run_ends_anyway(default_handler):
    result = interrupted(Bowl(at=11, fault=press_ctrl_c), START, eta=0.3, max_iter=10)
    assert (result.nit, result.status, result.success) == (9, Status.INTERRUPTED, False)


@pytest.mark.parametrize("fault", [interrupt, press_ctrl_c])
def test_interrupted_when_some_trajectories_have_ended(fault, default_handler):
    """A trajectory started at the minimum converges at once; the others are interrupted later."""
    minimum = 1 / Bowl().curvature
    x0 = np.column_stack([START, minimum, -START])
    result = interrupted(Bowl(at=15, fault=fault), x0, eta=0.3, tol=1e-9)
    n = 13
    assert result.status.tolist() == [Status.INTERRUPTED, Status.CONVERGED, Status.INTERRUPTED]
    assert result.success.tolist() == [False, True, False]
    assert result.nit.tolist() == [n, 1, n]
    for k in (0, 2):
        np.testing.assert_allclose(
            result.x[:, k], minimize(Bowl(), x0[:, k], eta=0.3, max_iter=n).x, rtol=1e-12
        )
    np.testing.assert_allclose(result.x[:, 1], minimum, rtol=1e-15)


# ------------------------------------------------------------ the default path


def test_the_default_path_is_interrupted_alike(default_handler):
    """Inside the callback, inside the loss, by a signal: eta="auto" leaves with a result, and goes on exactly."""
    whole = minimize(LAD(A, REAL, intercept=True), penalty=L1(0.05), max_iter=200)

    def in_callback(now):
        if now.nit == 45:
            raise KeyboardInterrupt

    def by_signal(now):
        if now.nit == 45:
            signal.raise_signal(signal.SIGINT)

    for callback in (in_callback, by_signal):
        result = interrupted(
            LAD(A, REAL, intercept=True), penalty=L1(0.05), max_iter=200, callback=callback
        )
        assert (result.status, result.nit, result.success) == (Status.INTERRUPTED, 45, False)
        rest = minimize(
            LAD(A, REAL, intercept=True), penalty=L1(0.05), max_iter=155, state=result.state
        )
        for name in ("x", "fun", "nit", "nfev", "eta"):
            assert np.array_equal(rest[name], whole[name]), name
