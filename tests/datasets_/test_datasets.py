"""Names of data sets, and files in the user's directory. A wrong file is never used."""

import doctest
import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import datasets
from adagrad_diff.datasets import DataError, _registry, stand_ins
from looping import looped
from tiny_dataset import CONTENT, DENSE, ENTRY, WRONG, files

SHARED = Path(__file__).parents[3] / "shared" / "data"  # the real files, on machines that have them
NAMES = ["splice.t", "splice", "news20", "a9a", "mushrooms", "heart_scale"]
FUNCTIONS = [
    datasets.load,
    datasets.where,
    datasets.fetch,
    datasets.shape,
    datasets.stand_in,
    stand_ins.generate,
]


@looped("function", FUNCTIONS)
def test_names(function):
    assert datasets.names() == [*NAMES, "tiny"]
    for name in ("news20.binary", "", None, ["splice"]):
        with pytest.raises(
            ValueError, match=rf"'name' parameter of {function.__name__} must be one"
        ):
            function(name)


@pytest.mark.parametrize(("module", "least"), [(datasets, 6), (stand_ins, 4)])
def test_examples(module, least, monkeypatch):
    monkeypatch.delitem(_registry.REGISTRY, "tiny")
    done = doctest.testmod(module)
    assert done.failed == 0
    assert done.attempted >= least


@pytest.mark.peer
@pytest.mark.parametrize("dense", [True, False])
def test_directory_by_argument(dense, folder, cache, monkeypatch):
    monkeypatch.setitem(
        _registry.REGISTRY, "tiny", _registry.Entry(**{**vars(ENTRY), "dense": dense})
    )
    data = datasets.load("tiny", folder, download=False)
    assert (data.name, data.source, data.sha256) == ("tiny", "directory", ENTRY.sha256)
    np.testing.assert_array_equal(data.A if dense else data.A.toarray(), DENSE)
    np.testing.assert_array_equal(data.b, [1, -1, 1, -1])
    assert data.A.dtype == data.b.dtype == np.float64
    assert dense or data.A.indices.dtype == data.A.indptr.dtype == np.int32
    assert datasets.where("tiny", str(folder)) == folder / "tiny"
    assert not cache.exists()


@pytest.mark.peer
def test_argument_before_variable_before_cache(folder, cache, tmp_path, monkeypatch):
    cache.mkdir(parents=True)
    (cache / "tiny").write_bytes(CONTENT)
    assert datasets.load("tiny").source == "cache"
    assert datasets.where("tiny") == cache / "tiny"
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", str(folder))
    assert datasets.load("tiny").source == "directory"
    assert datasets.where("tiny") == folder / "tiny"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert datasets.load("tiny", empty).source == "cache"  # the argument replaces the variable
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", "")  # as if it were not set, not the current directory
    monkeypatch.chdir(folder)
    assert datasets.load("tiny").source == "cache"
    (cache / "tiny").unlink()
    assert datasets.where("tiny", empty) is None
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", "~/data")
    assert datasets.load("tiny").source == datasets.load("tiny", "~/data").source == "directory"


@pytest.mark.parametrize("stand_in", [False, True])
def test_directories_that_do_not_exist(stand_in, tmp_path, monkeypatch):
    def load(directory=None):
        return datasets.load("tiny", directory, stand_in=stand_in)

    with pytest.raises(
        DataError, match=r"'directory' argument names '.*absent', which is not a dir"
    ):
        load(tmp_path / "absent")
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"variable ADAGRAD_DIFF_DATA names '.*gone', which is not"):
        load()
    with pytest.raises(ValueError, match=r"'directory' must be the path of a .*\. Got 5 instead"):
        load(5)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="which is not a directory"):
        load(tmp_path / "file")


@pytest.mark.parametrize(("fault", "stand_in"), list(zip(WRONG, [False, True] * 3, strict=True)))
def test_wrong_files_of_the_user(fault, stand_in, folder, cache):
    """They are errors even if a stand-in or a download would do, and stay as they are."""
    wrong = WRONG[fault]
    (folder / "tiny").write_bytes(wrong)
    with pytest.raises(DataError) as caught:
        datasets.load("tiny", folder, stand_in=stand_in)
    for part in (
        f"{folder / 'tiny'} is damaged or is another file",
        f"expected sha256 {ENTRY.sha256} ({len(CONTENT)} bytes)",
        f"found {hashlib.sha256(wrong).hexdigest()} ({len(wrong)} bytes)",
        f"Replace it by {ENTRY.url}",
    ):
        assert part in str(caught.value)
    assert files(folder) == {"tiny": wrong}
    assert not cache.exists()
    (folder / "tiny").unlink()
    (folder / "tiny").mkdir()
    with pytest.raises(DataError, match=r"tiny cannot be read: .+\. Replace it"):
        datasets.load("tiny", folder, stand_in=stand_in)


def test_without_scikit_learn(folder, monkeypatch):
    """The file is there: a stand-in is not what the user wants."""
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'adagrad-diff\[sklearn\]'"):
        datasets.load("tiny", folder, stand_in=True)


@pytest.mark.peer
@pytest.mark.skipif(not SHARED.is_dir(), reason="the LIBSVM files are not here")
@pytest.mark.parametrize("name", NAMES)
def test_real_files(name):
    entry = _registry.REGISTRY[name]
    data = datasets.load(name, SHARED, download=False)
    assert data.source == "directory"
    assert datasets.where(name, SHARED).stat().st_size == entry.size
    labels, numbers = np.unique(data.b, return_counts=True)
    assert labels.tolist() == sorted(entry.labels)
    np.testing.assert_allclose(numbers, [entry.labels[label] for label in labels], rtol=0.03)
    assert isinstance(data.A, np.ndarray) == entry.dense
    assert data.A.shape == entry.shape
    assert data.A.dtype == np.float64
