"""The data inside the package: LIBSVM's splice and splice.t, bitwise identical, with NumPy only."""

import hashlib
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import datasets
from adagrad_diff.datasets import DataError, _files
from adagrad_diff.datasets._registry import REGISTRY
from looping import looped

SHARED = Path(__file__).parents[3] / "shared" / "data"
INSIDE = ("splice.t", "splice")
FOLDER = _files.bundled(REGISTRY["splice"]).parent


@pytest.fixture(params=INSIDE)
def name(request):
    return request.param


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def lines(codes, b):
    """LIBSVM's text, row by row."""
    for row, label in zip(codes, b, strict=True):
        terms = "".join(f"{j}:{code:.6f} " for j, code in enumerate(row, start=1))
        yield f"{int(label):+d} {terms}\n"


def test_which_come_with_the_package():
    assert {path.name for path in FOLDER.glob("*.bz2")} == {f"{name}.bz2" for name in INSIDE}
    notice = (FOLDER / "NOTICE.md").read_text()
    for word in ("CC BY 4.0", "Towell", "Noordewier", "Shavlik", "GenBank 64.1", "10.24432/C5M888"):
        assert word in notice
    for name in INSIDE:
        assert REGISTRY[name].sha256 in notice


@pytest.mark.usefixtures("no_network")
def test_load(name, monkeypatch, cache):
    """Without scikit-learn or a network. Text and numbers are those of the registry."""
    for absent in ("sklearn", "sklearn.datasets"):
        monkeypatch.setitem(sys.modules, absent, None)
    data, entry = datasets.load(name, download=False), REGISTRY[name]
    assert (data.name, data.source, data.sha256) == (name, "package", entry.sha256)
    assert data.A.shape == entry.shape
    assert data.A.dtype == data.b.dtype == np.float64
    assert data.A.flags.c_contiguous
    assert {label: int((data.b == label).sum()) for label in (1, -1)} == entry.labels
    text = "".join(lines(*data)).encode()
    assert (len(text), hashlib.sha256(text).hexdigest()) == (entry.size, entry.sha256)
    assert datasets.where(name) == FOLDER / f"{name}.bz2"
    assert not cache.exists()
    if SHARED.is_dir():
        assert (SHARED / name).read_bytes() == text


@pytest.mark.peer
@pytest.mark.usefixtures("no_network")
def test_fetch_writes_the_text(name, cache, tmp_path):
    """The user's file comes first, and must be the right one."""
    path = datasets.fetch(name)
    assert path == cache / name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == REGISTRY[name].sha256
    assert datasets.load(name).source == "package"
    folder = tmp_path / "mine"
    assert datasets.fetch(name, folder) == datasets.fetch(name, folder) == folder / name
    own = datasets.load(name, folder)
    assert (own.source, datasets.where(name, folder)) == ("directory", folder / name)
    for mine, inside in zip(own, datasets.load(name), strict=True):
        np.testing.assert_array_equal(mine, inside)
        assert mine.dtype == inside.dtype
    (folder / name).write_text("+1 1:2\n")
    for use in (datasets.load, datasets.fetch):
        with pytest.raises(DataError, match="is damaged or is another file"):
            use(name, folder)
    assert (folder / name).read_text() == "+1 1:2\n"


@looped("fault", ["flipped", "short", "another", "a directory"])
def test_damage(name, fault, tmp_path, monkeypatch):
    """A wrong bit is never used, and no stand-in takes its place in silence."""
    content = (FOLDER / f"{name}.bz2").read_bytes()
    wrong = {
        "flipped": content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
        "short": content[:-1],
        "another": (FOLDER / f"{INSIDE[name == INSIDE[0]]}.bz2").read_bytes(),
    }
    path = tmp_path / fault / "packed"
    path.parent.mkdir(exist_ok=True)
    path.mkdir(exist_ok=True) if fault == "a directory" else path.write_bytes(wrong[fault])
    monkeypatch.setattr(_files, "bundled", lambda entry: path)
    for use in (lambda: datasets.load(name, stand_in=True), lambda: datasets.fetch(name)):
        with pytest.raises(
            DataError, match=r"packed.* (is damaged|cannot be read).*Install adagrad-diff again\."
        ):
            use()
