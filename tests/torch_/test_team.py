"""Work in PyTorch's threads: every row once, errors come back, and without OpenMP it still works."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from adagrad_diff.torch import AdaGradDiff, _team  # noqa: E402


@pytest.fixture(params=["team", "no OpenMP", "forked"])
def way(request, monkeypatch):
    if request.param == "team" and _team._parallel() is None:
        pytest.skip("this PyTorch has no GNU OpenMP beside it")
    if request.param == "no OpenMP":
        monkeypatch.setattr(_team, "_parallel", lambda: None)
    if request.param == "forked":
        monkeypatch.setattr(_team, "HOME", os.getpid() + 1)
    return request.param


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_row_exactly_once(way, rows, threads):
    count = np.zeros(rows, int)

    def worker(part, lo, hi):
        count[lo:hi] += 1

    _team.over_team(worker, rows, threads)
    assert (count == 1).all()


def test_several_threads_take_part():
    if _team._parallel() is None:
        pytest.skip("this PyTorch has no GNU OpenMP beside it")
    together = threading.Barrier(2, timeout=30)
    _team.over_team(lambda part, lo, hi: together.wait(), 2, 2)  # nobody gets through alone


def test_an_error_comes_back(way):
    def worker(part, lo, hi):
        if part == 1:
            raise KeyError("from a thread")

    with pytest.raises(KeyError, match="from a thread"):
        _team.over_team(worker, 10, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning")  # JAX, if another test has loaded it
def test_a_step_in_a_forked_child():
    """Where PyTorch's own operations would wait for ever."""
    p = torch.ones(1 << 20).requires_grad_()
    p.grad = torch.ones_like(p)
    optimizer = AdaGradDiff([p], lr=0.5)
    optimizer.step()
    child = os.fork()
    if child == 0:
        try:
            optimizer.step()
            os._exit(0 if (np.asarray(p.detach()) == 0.0).all() else 1)  # g - g_prev = 0: the same step again
        finally:
            os._exit(2)
    for _ in range(300):
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            break
        threading.Event().wait(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child waits for threads it has not got")
    assert os.waitstatus_to_exitcode(code) == 0
