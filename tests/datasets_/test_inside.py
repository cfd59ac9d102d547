"""The data inside the package: LIBSVM's splice and splice.t, to the last byte, with nothing but NumPy."""

import hashlib
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

import pack_splice
from adagrad_diff import datasets
from adagrad_diff.datasets import DataError, _inside
from adagrad_diff.datasets._registry import REGISTRY
from looping import looped

SHARED = Path(__file__).parents[3] / "shared" / "data"
INSIDE = ("splice.t", "splice")
A_, G_, C_, T_ = 1, 2, 3, 4  # the codes of the bases


@pytest.fixture(params=INSIDE)
def name(request):
    return request.param


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def lines(codes, b):
    """The naive twin of `as_text`."""
    for row, label in zip(codes, b, strict=True):
        terms = "".join(f"{j}:{code:.6f} " for j, code in enumerate(row, start=1))
        yield f"{int(label):+d} {terms}\n"


def test_they_decode_to_the_file_of_the_registry(name):
    entry = REGISTRY[name]
    text = _inside.text(entry)
    assert len(text) == entry.size
    assert hashlib.sha256(text).hexdigest() == entry.sha256
    assert "".join(lines(*_inside.decoded(entry))).encode() == text
    assert _inside.packed(entry).stat().st_size < 0.022 * entry.size


def test_which_come_with_the_package():
    assert tuple(name for name, entry in REGISTRY.items() if entry.inside) == INSIDE
    notice = (Path(_inside.__file__).parent / "inside" / "NOTICE.md").read_text()
    for word in ("CC BY 4.0", "Towell", "Noordewier", "Shavlik", "GenBank 64.1", "10.24432/C5M888"):
        assert word in notice
    for name in INSIDE:
        assert REGISTRY[name].sha256 in notice


@pytest.mark.usefixtures("no_network")
def test_load(name, monkeypatch, cache):
    """Without scikit-learn, pooch or a network."""
    for absent in ("sklearn", "sklearn.datasets", "pooch", "requests"):
        monkeypatch.setitem(sys.modules, absent, None)
    data = datasets.load(name, download=False)
    entry = REGISTRY[name]
    assert (data.name, data.source, data.sha256) == (name, "package", entry.sha256)
    assert data.A.shape == entry.shape
    assert data.A.dtype == data.b.dtype == np.float64
    assert data.A.flags.c_contiguous
    assert set(np.unique(data.A)) == {1.0, 2.0, 3.0, 4.0}
    assert {label: int((data.b == label).sum()) for label in (1, -1)} == entry.labels
    assert datasets.where(name).name == f"{name}.2bit"
    assert not cache.exists()


def test_the_codes_are_those_of_the_bases(name):
    """Introns begin with GT and end with AG: at the middle of the window, that tells junctions from the rest."""
    A, b = datasets.load(name)
    begins = (A[:, 30] == G_) & (A[:, 31] == T_)
    ends = (A[:, 28] == A_) & (A[:, 29] == G_)
    assert (begins | ends)[b < 0].mean() > 0.99
    assert (begins | ends)[b > 0].mean() < 0.15


@pytest.mark.peer
def test_the_users_file_is_first(name, tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    assert datasets.fetch(name, folder) == folder / name
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


@pytest.mark.peer
@pytest.mark.usefixtures("no_network")
def test_fetch_writes_the_text(name, cache):
    path = datasets.fetch(name)
    assert path == cache / name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == REGISTRY[name].sha256
    assert datasets.load(name).source == "package"


@looped("fault", ["flipped", "short", "long", "gone"])
def test_damage(name, fault, tmp_path, monkeypatch):
    """A wrong bit is never used, and no stand-in takes its place in silence."""
    content = (Path(_inside.__file__).parent / "inside" / f"{name}.2bit").read_bytes()
    wrong = {
        "flipped": content[:-1] + bytes([content[-1] ^ 1]),
        "short": content[:-1],
        "long": content + b"\0",
    }
    path = tmp_path / "packed"
    path.unlink(missing_ok=True)
    if fault != "gone":
        path.write_bytes(wrong[fault])
    monkeypatch.setattr(_inside, "packed", lambda entry: path)
    for use in (lambda: datasets.load(name, stand_in=True), lambda: _inside.text(REGISTRY[name])):
        with pytest.raises(
            DataError, match=r"packed.* (is damaged|cannot be read).*Install adagrad-diff again\."
        ):
            use()


def test_packing_is_the_inverse(name):
    entry = REGISTRY[name]
    assert pack_splice.packed(_inside.text(entry)) == _inside.packed(entry).read_bytes()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the LIBSVM files are not here")
def test_against_the_files_of_the_collection(name):
    assert (SHARED / name).read_bytes() == _inside.text(REGISTRY[name])
