"""Only regular files are read as checkpoints, states and locks. A FIFO would wait forever, a device might never end."""

import os
import signal
import socket
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from adagrad_diff import L1, AdaGradDiff, Squared, load_state, minimize, sweep
from adagrad_diff._check import InputError

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no FIFOs in directories"
)
A = np.random.default_rng(0).standard_normal((20, 3))
LOSS = Squared(A, A[:, 0])
KINDS = ("fifo", "device", "socket")


@contextmanager
def soon():
    """Fail instead of hanging."""

    def too_late(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_REAL, 20.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def place(path, kind, monkeypatch):
    """Put a special file there."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        monkeypatch.chdir(path.parent)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)


@pytest.fixture(params=KINDS)
def special(request, tmp_path, monkeypatch):
    """A function that puts a special file somewhere, which must be there in the end, and returns what is wrong with it."""
    placed = []

    def put(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        place(path, request.param, monkeypatch)
        placed.append((path, os.lstat(path)))
        return "it is not a regular file"

    with soon():
        yield put
    assert placed
    assert all(os.path.samestat(os.lstat(path), before) for path, before in placed)


def run(path):
    return minimize(LOSS, eta=0.1, max_iter=3, checkpoint=path)


def test_checkpoint(special, tmp_path):
    sentence = special(path := tmp_path / "run.npz")
    with pytest.raises(
        OSError,
        match=f"The checkpoint .*run.npz cannot be read: {sentence}. Delete it to begin again",
    ):
        run(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_lock(special, tmp_path):
    sentence = special(tmp_path / "run.npz.lock")
    with pytest.raises(
        OSError, match=f"The lock file .*run.npz.lock cannot be used: {sentence}. Delete it"
    ):
        run(tmp_path / "run.npz")


def test_a_directory_as_lock(tmp_path):
    (tmp_path / "run.npz.lock").mkdir()
    with pytest.raises(
        OSError,
        match=r"The lock file .*run.npz.lock cannot be used: it is not a regular file. Delete it",
    ):
        run(tmp_path / "run.npz")


def test_state(special, tmp_path):
    sentence = special(path := tmp_path / "state.npz")
    with pytest.raises(
        ValueError, match=f"state.npz is not a readable state file of adagrad_diff: {sentence}"
    ):
        load_state(path)
    with pytest.raises(OSError, match=f"state.npz cannot be written: {sentence}"):
        minimize(LOSS, eta=0.1, max_iter=3).state.save(path)


def swept(directory):
    return sweep(
        LOSS, L1(0.1), {"rule": AdaGradDiff}, [0.1], np.zeros((3, 1)), 3, checkpoint=directory
    )


@pytest.mark.parametrize("name", ["sweep.npz", "sweep.npz.lock", "chunk-0000.npz"])
def test_sweep(special, tmp_path, name):
    if name == "chunk-0000.npz":
        swept(tmp_path)
        (tmp_path / name).unlink()
    sentence = special(tmp_path / name)
    with pytest.raises((OSError, InputError), match=f"{name} .*: {sentence}"):
        swept(tmp_path)


def test_links_to_regular_files_are_followed(tmp_path):
    run(tmp_path / "run.npz")
    (tmp_path / "link.npz").symlink_to(tmp_path / "run.npz")
    assert run(tmp_path / "link.npz").nit == 3
    minimize(LOSS, eta=0.1, max_iter=3).state.save(tmp_path / "state.npz")
    (tmp_path / "state-link.npz").symlink_to(tmp_path / "state.npz")
    assert int(load_state(tmp_path / "state-link.npz").n) == 3
