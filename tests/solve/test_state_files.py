"""State files: arrays and JSON, replaced in one step; anything else is refused by a sentence that names the file."""

import json
import os
import pickle

import numpy as np
import pytest

from adagrad_diff import L1, LAD, load_state, minimize
from adagrad_diff.solve import state as _state
from adagrad_diff.solve import tries
from user_losses import Bowl


def rewritten(path, **changes):
    """The same state file with some entries replaced; None removes one."""
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    content = {name: array for name, array in {**content, **changes}.items() if array is not None}
    with open(path, "wb") as file:
        np.savez(file, **content)


def header(**changes):
    return np.array(json.dumps({"format": _state.FORMAT, "rule": "AdaGradDiff", "batched": False, "problem": {}, **changes}))


BROKEN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("x = 1"),
    "pickle": lambda path: path.write_bytes(pickle.dumps({"x": 1})),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped": lambda path: path.write_bytes(path.read_bytes().replace(np.float64(0.125).tobytes(), b"\xff" * 8)),
    "foreign": lambda path: rewritten(path, header=None),
    "no JSON": lambda path: rewritten(path, header=np.array("state")),
    "other format": lambda path: rewritten(path, header=header(format="adagrad-diff state 99")),
    "no x": lambda path: rewritten(path, x=None),
    "unknown entry": lambda path: rewritten(path, y=np.zeros(3)),
    "objects": lambda path: rewritten(path, x=np.array([{}, 1.0, None], dtype=object)),
    "short gradient": lambda path: rewritten(path, g=np.zeros(2)),
    "other shape": lambda path: rewritten(path, x_best=np.zeros((2, 2))),
    "scalars for trajectories": lambda path: rewritten(path, header=header(batched=True)),
    "strings": lambda path: rewritten(path, x=np.array(["a", "b", "c"])),
    "integers": lambda path: rewritten(path, x=np.array([1, 2, 3])),
    "integer sums": lambda path: rewritten(path, x_sum=np.array([1, 2, 3])),
    "half precision": lambda path: rewritten(path, x_best=np.zeros(3, np.float16)),
    "two precisions": lambda path: rewritten(path, x_best=np.zeros(3, np.float32)),
    "big-endian": lambda path: rewritten(path, x=np.zeros(3, ">f8")),
    "negative n": lambda path: rewritten(path, n=np.array(-1)),
    "n is no integer": lambda path: rewritten(path, n=np.array(0.5)),
    "negative norm": lambda path: rewritten(path, g_first=np.array(-1.0)),
    "negative sums": lambda path: rewritten(path, **{"memory.total": np.array([-1.0, 0.0, 0.0])}),
    "failed is no truth value": lambda path: rewritten(path, failed=np.array(0.0)),
    "x is not finite": lambda path: rewritten(path, x=np.array([np.nan, 0.0, 0.0])),
    "x_best is not finite": lambda path: rewritten(path, x_best=np.array([np.inf, 0.0, 0.0])),
    "x_sum is missing": lambda path: rewritten(path, x_sum=None),
    "batched is a word": lambda path: rewritten(path, header=header(batched="yes")),
    "rule is a number": lambda path: rewritten(path, header=header(rule=3)),
    "problem is a list": lambda path: rewritten(path, header=header(problem=[])),
    "unknown in the header": lambda path: rewritten(path, header=header(more=1)),
    "scratch memory": lambda path: rewritten(path, step=np.ones(1), x_prev=np.ones(1), g_prev=np.ones(1)),  # kernels would read
    "scratch memory in the header": lambda path: rewritten(path, header=header(turning=True)),
    "header is a list": lambda path: rewritten(path, header=np.array("[]")),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_files(fault, tmp_path):
    path = tmp_path / "run.npz"
    minimize(Bowl(), [0.125] * 3, eta=0.3, max_iter=0).state.save(path)
    intact = path.read_bytes()
    BROKEN[fault](path)
    assert path.read_bytes() != intact
    with pytest.raises(ValueError, match=r"run\.npz is not a readable state file"):
        load_state(path)


class Trap:
    """Unpickling it makes a directory."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_nothing_is_unpickled(tmp_path):
    path = tmp_path / "run.npz"
    minimize(Bowl(), np.zeros(3), eta=0.3, max_iter=1).state.save(path)
    rewritten(path, x=np.array([Trap(tmp_path / "executed")], dtype=object))
    with pytest.raises(ValueError, match=r"run\.npz is not a readable state file"):
        load_state(path)
    assert not (tmp_path / "executed").exists()


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.npz"):
        load_state(tmp_path / "absent.npz")
    with pytest.raises(FileNotFoundError, match="absent"):
        minimize(Bowl(), np.zeros(3), eta=0.3, max_iter=1).state.save(tmp_path / "absent" / "run.npz")


@pytest.mark.parametrize("path", [None, True, 1.5, "run\0.npz", [], "number of an open file"], ids=repr)
def test_paths_that_are_none(path, tmp_path):
    """A number least of all: open() takes it for a file that is open already, and closes it."""
    state = minimize(Bowl(), np.zeros(3), eta=0.3, max_iter=1).state
    with open(tmp_path / "mine", "wb") as file:
        path = file.fileno() if path == "number of an open file" else path
        for call in (load_state, state.save):
            with pytest.raises(ValueError, match=r"^'path' must be the path of a file or directory\. Got .* instead\.$"):
                call(path)
        file.write(b"still open")


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    old, new = (minimize(Bowl(), np.zeros(3), eta=0.3, max_iter=n).state for n in (5, 9))
    old.save(path)

    def full(file, **arrays):
        file.write(b"half of a file")
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_state.np, "savez", full)
        with pytest.raises(OSError, match="no space left"):
            new.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]
    assert load_state(path).n == 5
    new.save(path)  # and replaces it when all is well
    assert load_state(path).n == 9
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


MEMORIES = {
    "short mean": {"notes.certifier.latest": np.zeros(3)},
    "samples out of range": {
        "notes.certifier.known_samples": np.array([10**6]),
        "notes.certifier.known_multipliers": np.array([0.0]),
    },
    "negative samples": {
        "notes.certifier.known_samples": np.array([-5]),
        "notes.certifier.known_multipliers": np.array([0.0]),
    },
    "missing": {"notes.certifier.count": None},
    "a value that its point does not have": {"notes.certifier.value": np.array(1e9), "notes.certifier.bound": np.array(1e9)},
    "a bound above its value": {"notes.certifier.bound": np.array(1e9)},
    "words": {"notes.certifier.n": np.array("many")},
    "etas of a race": {"notes.race.etas": np.zeros(2)},
    "ground of a race": {"notes.race.ground": np.zeros(2)},
    "best of a race": {"notes.race.best": np.zeros(5, np.float32)},
    "no past": {"notes.race.past": np.zeros(0)},
    "sums of the trajectories": {"trajectories.memory.total": np.zeros((2, 3))},
}


@pytest.mark.parametrize("fault", MEMORIES)
def test_memories_that_do_not_fit(fault, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "run.npz"
    A = rng.standard_normal((30, 5))
    run = {"loss": LAD(A, A[:, 0] + rng.standard_normal(30)), "penalty": L1(0.05), "tol": 1e-9, "on_failure": "ignore"}
    minimize(**run, max_iter=100, finish=False).state.save(path)
    rewritten(path, **MEMORIES[fault])
    with pytest.raises(ValueError, match=r"'state'|not a readable state file"):
        minimize(**run, finish=False, state=load_state(path))


FINISHES = {
    "half of it": {"notes.finish.near": None},
    "the other half": {"notes.finish.spent": None},
    "more than all": {"notes.finish.more": np.array(1.0)},
    "several": {"notes.finish.spent": np.zeros(2)},
    "none": {"notes.finish.near": np.zeros(0)},
    "words": {"notes.finish.near": np.array("many")},
    "not a number": {"notes.finish.spent": np.array(np.nan)},
    "negative": {"notes.finish.spent": np.array(-1.0)},
    "infinite": {"notes.finish.near": np.array(np.inf)},
    "too small": {"notes.finish.near": np.array(0.0)},
    "not real": {"notes.finish.near": np.array(4j)},
}


@pytest.mark.parametrize("fault", FINISHES)
def test_memories_of_the_finish_that_do_not_fit(fault, tmp_path, monkeypatch):
    monkeypatch.setattr(tries, "AT_ONCE", -1.0)
    monkeypatch.setattr(tries, "INSTEAD", -1)
    rng, path = np.random.default_rng(0), tmp_path / "run.npz"
    A = rng.standard_normal((30, 5))
    run = {"loss": LAD(A, A[:, 0] + rng.standard_normal(30)), "penalty": L1(0.05), "tol": 0.0, "on_failure": "ignore"}
    minimize(**run, max_iter=20).state.save(path)
    minimize(**run, max_iter=5, state=load_state(path))  # all is well
    rewritten(path, **FINISHES[fault])
    with pytest.raises(ValueError, match=r"'state' has a memory of the finish that does not fit|not a readable state file"):
        minimize(**run, max_iter=5, state=load_state(path))
