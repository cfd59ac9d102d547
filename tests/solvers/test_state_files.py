"""State files: arrays and JSON, replaced in one step; anything else is refused by a sentence that names the file."""

import json
import os
import pickle

import numpy as np
import pytest

from adagrad_diff import L1, LAD, load_state, minimize
from looping import looped
from user_losses import Bowl


def entries(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def rewritten(path, content=None, **changes):
    """Replace some entries of the state file; None removes one, and a dictionary changes fields of the header."""
    content = entries(path) if content is None else content
    if isinstance(changes.get("header"), dict):
        changes["header"] = np.array(
            json.dumps(json.loads(str(content["header"])) | changes["header"])
        )
    content = {name: array for name, array in {**content, **changes}.items() if array is not None}
    with open(path, "wb") as file:
        np.savez(file, **content)


BROKEN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("x = 1"),
    "pickle": lambda path: path.write_bytes(pickle.dumps({"x": 1})),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "flipped": lambda path: path.write_bytes(
        path.read_bytes().replace(np.float64(0.125).tobytes(), b"\xff" * 8)
    ),
    "foreign": lambda path: rewritten(path, header=None),
    "other format": lambda path: rewritten(path, header={"format": "adagrad-diff state 99"}),
    "no x": lambda path: rewritten(path, x=None),
    "unknown entry": lambda path: rewritten(path, y=np.zeros(3)),
    "objects": lambda path: rewritten(path, x=np.array([{}, 1.0, None], dtype=object)),
    "short gradient": lambda path: rewritten(path, g=np.zeros(2)),
    "other shape": lambda path: rewritten(path, x_best=np.zeros((2, 2))),
    "scalars for trajectories": lambda path: rewritten(path, header={"batched": True}),
    "integers": lambda path: rewritten(path, x=np.array([1, 2, 3])),
    "half precision": lambda path: rewritten(path, x_best=np.zeros(3, np.float16)),
    "big-endian": lambda path: rewritten(path, x=np.zeros(3, ">f8")),
    "negative n": lambda path: rewritten(path, n=np.array(-1)),
    "n is no integer": lambda path: rewritten(path, n=np.array(0.5)),
    "negative norm": lambda path: rewritten(path, g_first=np.array(-1.0)),
    "negative sums": lambda path: rewritten(path, **{"memory.total": np.array([-1.0, 0.0, 0.0])}),
    "failed is no truth value": lambda path: rewritten(path, failed=np.array(0.0)),
    "x is not finite": lambda path: rewritten(path, x=np.array([np.nan, 0.0, 0.0])),
    "batched is a word": lambda path: rewritten(path, header={"batched": "yes"}),
    "rule is a number": lambda path: rewritten(path, header={"rule": 3}),
    "unknown in the header": lambda path: rewritten(path, header={"more": 1}),
    "scratch memory": lambda path: rewritten(
        path, step=np.ones(1), x_prev=np.ones(1), g_prev=np.ones(1)
    ),  # kernels would read
    "header is a list": lambda path: rewritten(path, header=np.array("[]")),
}


@looped("fault", BROKEN)
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
        minimize(Bowl(), np.zeros(3), eta=0.3, max_iter=1).state.save(
            tmp_path / "absent" / "run.npz"
        )


@looped("path", [None, True, 1.5, "run\0.npz", [], "number of an open file"])
def test_paths_that_are_none(path, tmp_path):
    """A number least of all: open() takes it for a file that is open already, and closes it."""
    state = minimize(Bowl(), np.zeros(3), eta=0.3, max_iter=1).state
    with open(tmp_path / "mine", "wb") as file:
        path = file.fileno() if path == "number of an open file" else path
        for call in (load_state, state.save):
            with pytest.raises(
                ValueError,
                match=r"^'path' must be the path of a file or directory\. Got .* instead\.$",
            ):
                call(path)
        file.write(b"still open")


TAMPERED = {
    "shape": lambda array: np.zeros((*array.shape, 2), array.dtype),
    "type": lambda array: np.zeros(array.shape, np.complex128),
    "huge": lambda array: np.full(array.shape, 100 if array.dtype.itemsize == 1 else 10**9).astype(
        array.dtype
    ),
    "zero": lambda array: np.zeros(array.shape, array.dtype),
    "absent": lambda array: None,
}


@pytest.mark.parametrize("tamper", TAMPERED)
def test_no_entry_of_a_certified_run_is_trusted(tamper, tmp_path):
    """Whatever an entry is replaced with, the file is rejected or the run ends with a valid certificate."""
    rng, path = np.random.default_rng(0), tmp_path / "run.npz"
    A = rng.standard_normal((30, 5))
    run = {
        "loss": LAD(A, A[:, 0] + rng.standard_normal(30)),
        "penalty": L1(0.05),
        "on_failure": "ignore",
    }
    best = minimize(**run, tol=1e-9).fun
    minimize(**run, tol=1e-9, max_iter=30, finish=False).state.save(path)
    intact, rejected = entries(path), 0
    arrays = {name: array for name, array in intact.items() if array.dtype.kind in "fiub"}
    assert len(arrays) > 10
    for name, array in arrays.items():
        rewritten(path, intact, **{name: TAMPERED[tamper](array)})
        try:
            result = minimize(**run, tol=1e-3, max_iter=30, state=load_state(path), finish=False)
        except ValueError:
            rejected += 1
        else:
            assert np.isfinite(result.x).all(), name
            assert result.fun - result.gap <= best * (1 + 1e-9) <= result.fun * (1 + 2e-9), name
    assert rejected > (0 if tamper in ("zero", "huge") else 10)
