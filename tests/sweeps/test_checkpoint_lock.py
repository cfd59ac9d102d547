"""One process works in a checkpoint at a time, and what killed ones have left there is removed."""

import contextlib
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import AdaGrad, AdaGradDiff, Interrupted, load_state, minimize, named, sweep
from checkpointing import OPTIONS, digest, half_way, interrupt_after, problem, snapshot, uninterrupted
from user_losses import Bowl

HERE = Path(__file__).parents[1] / "cases"
TOKEN = "0123456789abcdef"
IN_USE = r"^The checkpoint in {} is in use by another sweep\. Wait for its end, or choose another directory\.$"

BUSY = """
import sys
sys.path.insert(0, sys.argv[1])
import checkpointing as t
from adagrad_diff.sweeps import run as _sweep

_sweep.SAVE = 0.01
t.sweep(*t.problem(10**6), record=10**5, n_jobs=1, checkpoint=sys.argv[2])
"""


@pytest.mark.peer
def test_another_process(tmp_path, monkeypatch):
    """It is told from one that was killed."""
    pytest.importorskip("fcntl")

    def run():
        return sweep(*problem(10**6), record=10**5, n_jobs=1, checkpoint=tmp_path)

    with subprocess.Popen([sys.executable, "-c", BUSY, str(HERE), str(tmp_path)]) as busy:
        try:
            while busy.poll() is None and not list(tmp_path.glob("*.progress.npz")):
                time.sleep(0.01)
            with pytest.raises(BlockingIOError, match=IN_USE.format(re.escape(str(tmp_path)))):
                run()
            assert busy.poll() is None
        finally:
            busy.send_signal(signal.SIGKILL)
    interrupt_after(monkeypatch, 0)
    with pytest.raises(Interrupted):
        run()


@pytest.mark.peer
def test_another_thread(tmp_path):
    answers = []

    def slow(x):
        time.sleep(0.01)
        return Bowl()(x)

    def run():
        return sweep(named("slow", slow), None, [AdaGradDiff, AdaGrad], [0.1, 0.2], np.zeros((3, 2)), 100, checkpoint=tmp_path)

    thread = threading.Thread(target=lambda: answers.append(run()))
    thread.start()
    try:
        while thread.is_alive() and not (tmp_path / "manifest.json").exists():
            time.sleep(0.01)
        before = snapshot(tmp_path)
        with pytest.raises(BlockingIOError, match=IN_USE.format(re.escape(str(tmp_path)))):
            run()
        assert snapshot(tmp_path) == before
    finally:
        thread.join()
    assert digest(run()) == digest(answers[0])


@pytest.mark.peer
def test_what_kills_leave_is_removed(tmp_path, monkeypatch):
    """Half-written files, before there is a manifest and after; and what is left of a part that is finished."""
    (tmp_path / f"manifest.json.{TOKEN}.partial").write_text("{")
    (tmp_path / "sweep.lock").touch()
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=tmp_path)) == uninterrupted()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert not [name for name in names if "partial" in name]
    (tmp_path / "part-0001.npz").rename(tmp_path / f"part-0001.npz.{TOKEN}.partial")
    (tmp_path / f"part-0000.progress.npz.{TOKEN}.partial").write_bytes(b"")
    (tmp_path / "part-0000.progress.npz").write_bytes(b"")
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=tmp_path)) == uninterrupted()
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.peer
def test_what_is_not_of_a_sweep_stays(tmp_path, monkeypatch):
    """In a directory of ours as well: a name of ours is needed for a file to be removed."""
    half_way(monkeypatch, tmp_path, problem(31), OPTIONS)
    theirs = [tmp_path / "film.partial", tmp_path / "part-0000.npz.bak", tmp_path / f"notes.{TOKEN}"]
    for path in theirs:
        path.write_text("precious")
    sweep(*problem(31), **OPTIONS, checkpoint=tmp_path)
    assert all(path.read_text() == "precious" for path in theirs)


def test_leftovers_of_a_state_file(tmp_path):
    """They go when the file is written again, unless somebody is still writing them, or they belong to another file."""
    fcntl = pytest.importorskip("fcntl")
    path, state = tmp_path / "run [1].npz", minimize(Bowl(), np.zeros(3), eta=0.3, max_iter=5).state
    left, written, other = (
        tmp_path / f"{name}.{token}.partial"
        for name, token in ((path.name, TOKEN), (path.name, TOKEN[::-1]), ("run 1.npz", TOKEN))
    )
    for partial in (left, written, other):
        partial.write_bytes(b"half of a file")
    with contextlib.closing(open(written, "r+b")) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        state.save(path)
        assert sorted(tmp_path.iterdir()) == sorted([path, written, other])
    state.save(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, other])
    assert load_state(path).n == 5
