"""State files: arrays and JSON, replaced in one step; anything else is refused by a sentence that names the file."""

import json
import os
import pickle

import numpy as np
import pytest

from adagrad_diff import load_state, minimize
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
    "objects": lambda path: rewritten(path, x=np.array([{}, 1.0, None], dtype=object)),
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
