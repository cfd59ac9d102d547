"""One sweep works in a checkpoint at a time, and files that killed processes have left there are removed."""

import threading

import numpy as np
import pytest

from adagrad_diff import AdaGrad, AdaGradDiff, named, sweep
from checkpointing import OPTIONS, Crash, crash_at, digest, problem, snapshot, uninterrupted
from user_losses import Bowl
from waiting import wait_until

TOKEN = "0123456789abcdef"


@pytest.mark.peer
def test_another_thread(tmp_path):
    inside, gate, answers = threading.Event(), threading.Event(), []

    def waiting(x):
        if threading.current_thread().name.startswith("adagrad_diff.sweep"):
            inside.set()
            assert gate.wait(60)
        return Bowl()(x)

    def run():
        rules = [AdaGradDiff, AdaGrad]
        return sweep(
            named("waiting", waiting),
            None,
            rules,
            [0.1, 0.2],
            np.zeros((3, 2)),
            10,
            checkpoint=tmp_path,
        )

    thread = threading.Thread(target=lambda: answers.append(run()))
    thread.start()
    try:
        wait_until(lambda: inside.is_set() or not thread.is_alive())
        before = snapshot(tmp_path)
        with pytest.raises(BlockingIOError, match="in use by another run"):
            run()
        assert snapshot(tmp_path) == before
    finally:
        gate.set()
        thread.join()
    assert digest(run()) == digest(answers[0])


@pytest.mark.peer
def test_what_kills_leave_is_removed(tmp_path, monkeypatch):
    """Half-written files, before there is an index and after."""
    (tmp_path / f"sweep.npz.{TOKEN}.partial").write_text("{")
    (tmp_path / "sweep.npz.lock").touch()
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=tmp_path)) == uninterrupted()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert not [name for name in names if "partial" in name]
    (tmp_path / "chunk-0001.npz").rename(tmp_path / f"chunk-0001.npz.{TOKEN}.partial")
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=tmp_path)) == uninterrupted()
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.peer
def test_what_is_not_of_a_sweep_stays(tmp_path, monkeypatch):
    """In a directory of ours as well: a name of ours is needed for a file to be removed."""
    with monkeypatch.context() as patch:
        crash_at(patch, 3)
        with pytest.raises(Crash):
            sweep(*problem(), **OPTIONS, checkpoint=tmp_path)
    theirs = [
        tmp_path / "film.partial",
        tmp_path / "chunk-0000.npz.bak",
        tmp_path / f"notes.{TOKEN}",
    ]
    for path in theirs:
        path.write_text("precious")
    sweep(*problem(), **OPTIONS, checkpoint=tmp_path)
    assert all(path.read_text() == "precious" for path in theirs)
