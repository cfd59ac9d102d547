"""Checkpoints under attack: whatever their files hold, a sweep refuses them in a sentence or gives the same bits."""

import numpy as np
import pytest

from adagrad_diff import L1, AdaGrad, AdaGradDiff, Squared, sweep
from adagrad_diff._files import save_arrays as save
from adagrad_diff.sweeps.workers import SWEEP_FORMAT
from checkpointing import REAL, X0S, A, digest, header, schedule
from looping import looped

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl

N = 20
OPTIONS = {"record": 3, "n_jobs": 1}


def arguments():
    rules = {"Diff": AdaGradDiff, "AdaGrad": AdaGrad, "schedule": schedule}
    return Squared(A, REAL), L1(0.01), rules, [0.1, 0.2], X0S, N


def run(directory=None):
    return digest(sweep(*arguments(), **OPTIONS, checkpoint=directory))


@pytest.fixture(scope="module")
def expected():
    return run()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("finished")
    run(directory)
    return {file.name: file.read_bytes() for file in directory.iterdir()}


@pytest.fixture
def chunk(files, tmp_path):
    """The file of a chunk of a finished sweep."""
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path / "chunk-0001.npz"


def arrays(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files if name not in ("header", "sha256")}


def put(path, arrays, about):
    """Write arrays as a sweep does, with a checksum."""
    if any(array.dtype.hasobject for array in arrays.values()):
        np.savez(path, **arrays)
    else:
        save(path, {"format": SWEEP_FORMAT, **about}, arrays)


def refused(path):
    """The sweep says which file it is, why, and what to do; and leaves it as it is."""
    before = path.read_bytes()
    with pytest.raises(
        ValueError,
        match=r"cannot be used: .*\. Delete it and call again: only this chunk is computed",
    ) as caught:
        run(path.parent)
    assert str(caught.value).startswith(f"{path} cannot be used: ")
    assert path.read_bytes() == before
    return str(caught.value)


RESHAPED = {
    "one column": lambda a: a[..., :1],
    "more columns": lambda a: np.concatenate([a, a], axis=-1),
    "an axis more": lambda a: a[None],
    "other rows": lambda a: a[: len(a) // 2] if a.ndim > 1 else a[:2],
    "half": lambda a: a.astype(np.float16),
    "complex": lambda a: a.astype(np.complex128),
    "objects": lambda a: a.astype(object),
    "absent": lambda a: None,
}


@looped("change", RESHAPED)
def test_arrays_of_another_shape_or_type(chunk, expected, change):
    """Each of them, alone: no kernel gets to see it."""
    path, intact, about = chunk, arrays(chunk), header(chunk)
    about.pop("format")
    assert len(intact) >= 6
    for name, array in intact.items():
        new = {**intact, name: RESHAPED[change](array)}
        put(path, {key: value for key, value in new.items() if value is not None}, about)
        refused(path)
    put(path, intact, about)
    assert run(path.parent) == expected


def test_values_that_cannot_be(chunk, expected):
    path, intact, about = chunk, arrays(chunk), header(chunk)
    about.pop("format")
    wrong = {"nit": (-1, N + 1, 1 << 60), "status": (-1, 4, 99)}
    for name, values in wrong.items():
        for value in values:
            new = intact[name].copy()
            new[-1] = value
            put(path, {**intact, name: new}, about)
            refused(path)
    put(path, {**intact, "more": np.zeros(3)}, about)
    refused(path)
    for wrong in ({**about, "chunk": ["Diff", 0, 1]}, {**about, "sweep": {}}, {}):
        put(path, intact, wrong)
        refused(path)
    put(path, {name: np.asfortranarray(array) for name, array in intact.items()}, about)
    assert run(path.parent) == expected  # the same numbers in another order
