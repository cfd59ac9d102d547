"""State files under attack: every byte damaged, archives that lie about their size, threads, full disks and kills."""

import io
import threading
import tracemalloc
import zipfile

import numpy as np
import pytest

from adagrad_diff import _files, load_state, minimize
from looping import looped
from user_losses import Bowl

REFUSED = r"run\.npz is not a readable state file of adagrad_diff: ."


def run(n=7, size=3):
    return minimize(Bowl(np.linspace(0.5, 3.0, size)), np.zeros(size), eta=0.3, max_iter=n).state


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def bomb(path, bytes_of_zeros, compression=zipfile.ZIP_DEFLATED):
    """The state file with an x that is small on disk and large in memory."""
    content = members(path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (bytes_of_zeros // 8,)}
    )
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name in content.keys() - {"x.npy"}:
            archive.writestr(name, content[name])
        with archive.open("x.npy", "w") as file:
            file.write(header.getvalue())
            for _ in range(bytes_of_zeros >> 20):
                file.write(bytes(1 << 20))


def claim(path, shape, descr="<f8"):
    """The state file with an x whose header promises more than there is."""
    content = members(path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, old in content.items():
            archive.writestr(name, header.getvalue() + bytes(24) if name == "x.npy" else old)


def overlap(path):
    """A thousand members that are all the same bytes of the file."""
    content = members(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name, old in content.items():
            archive.writestr(name, old)
        array = io.BytesIO()
        np.save(array, np.zeros(1 << 17))
        archive.writestr("y.npy", array.getvalue())
        for _ in range(1000):
            archive.filelist.append(archive.filelist[-1])


def rewrite(path, name, content):
    old = members(path)
    with zipfile.ZipFile(path, "w") as archive:
        for other, its in old.items():
            archive.writestr(other, content if other == name else its)


HOSTILE = {
    "a bomb": lambda path: bomb(path, 1 << 24),
    "a large shape": lambda path: claim(path, (1 << 32,)),
    "a shape that wraps": lambda path: claim(path, (1 << 61, 8)),
    "a negative shape": lambda path: claim(path, (-3,)),
    "no bytes per entry": lambda path: claim(path, (1 << 40,), "|V0"),
    "an unknown type": lambda path: claim(path, (3,), "<f7"),
    "overlapping members": overlap,
    "a long header": lambda path: rewrite(
        path, "x.npy", b"\x93NUMPY\x02\x00\x00\x00\x00\x40" + b" " * (1 << 20)
    ),
    "a header of brackets": lambda path: rewrite(
        path, "x.npy", b"\x93NUMPY\x01\x00\x00\x20" + b"(" * 8192
    ),
    "no array": lambda path: rewrite(path, "x.npy", b"x = 1"),
    "an empty member": lambda path: rewrite(path, "x.npy", b""),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@looped("case", HOSTILE)
def test_hostile_archives_take_no_memory(tmp_path, case):
    path = tmp_path / "run.npz"
    run().save(path)
    HOSTILE[case](path)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=REFUSED):
            load_state(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * path.stat().st_size + (1 << 20), peak


def test_threads_that_save_one_path(tmp_path):
    """Nobody loses a file to another, and the last one written is whole."""
    path, states, errors = tmp_path / "run.npz", [run(n, size=2000) for n in range(4)], []

    def save(state):
        try:
            for _ in range(10):
                state.save(path)
                assert load_state(path).n in range(4)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(state,)) for state in states]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_a_file_deleted_before_it_is_locked(tmp_path, monkeypatch):
    """Another thread deletes what looks like the file of a killed process. The save goes on."""
    path, lock, calls = tmp_path / "run.npz", _files.lock, []

    def late(file):
        calls.append(str(file.name))
        if len(calls) == 1:
            _files.clear(tmp_path, path.name)
        lock(file)

    monkeypatch.setattr(_files, "lock", late)
    run(3).save(path)
    assert len(set(calls)) == 2, "the file and its replacement"
    assert load_state(path).n == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError, match=r"run\.npz cannot be written: Not a directory\."):
        run().save(tmp_path / "file" / "run.npz")
    (tmp_path / "run.npz").mkdir()
    with pytest.raises(OSError, match=r"run\.npz cannot be written: Is a directory\."):
        run().save(tmp_path / "run.npz")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "run.npz"]
