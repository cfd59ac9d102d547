"""Write files atomically, lock them, and read arrays without pickle and without memory beyond the size of the file."""

from __future__ import annotations

import errno
import glob
import math
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ._check import InputError, shown
from ._interrupt import half_written

try:
    import fcntl as locks
except ImportError:  # on Windows, an open file can neither be moved nor deleted, which is lock enough for a half-written one
    locks = None  # type: ignore[assignment]

TOKEN = 8  # random bytes in the name of a half-written file: no two writers share one, be they threads or processes
NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufU]\d+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \} *\n"
)
READ_AT_ONCE = 1 << 20
SPECIAL_FILES = {
    stat.S_ISFIFO: "a FIFO",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def as_path(value: Any, name: str) -> Path:
    """A path, or a sentence: a number would be taken for an open file, which reading it closes."""
    try:
        path = os.fsdecode(value)
    except TypeError:
        path = "\0"
    if "\0" in path:
        raise InputError(
            f"{name!r} must be the path of a file or directory. Got {shown(value)} instead."
        )
    return Path(path)


class NotRegularFileError(OSError):
    """A FIFO, a device or a socket in the place of a file: opening it may wait forever, and reading it may not end."""


def check_regular(status: os.stat_result) -> None:
    """Raise if a status is not that of a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        kind = next(
            (kind for test, kind in SPECIAL_FILES.items() if test(status.st_mode)), "a special file"
        )
        raise NotRegularFileError(f"it is {kind}, not a regular file")


def open_regular(path: str | os.PathLike[str], mode: str = "rb") -> Any:
    """Open a regular file for reading ("rb") or appending ("ab", which creates it). Other kinds of files are not opened."""
    flags = os.O_RDONLY if mode == "rb" else os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with suppress(FileNotFoundError):
        check_regular(os.stat(path))
    # The file may have been replaced since, so opening a FIFO must not wait for its other end.
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = open(path, mode, opener=lambda name, _: os.open(name, flags, 0o666))  # noqa: SIM115
    try:
        check_regular(os.fstat(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def read_text(path: Path) -> str:
    """Return the content of a regular file as text in UTF-8."""
    with open_regular(path) as file:
        return str(file.read().decode())


def write(path: Path, fill: Callable[[Any], Any]) -> None:
    """Write a file in one step: `fill(file)` fills it under another name first."""
    try:
        with partial(path) as file:
            fill(file)
            file.flush()
            os.fsync(
                file.fileno()
            )  # what the disk does not take must be known before the old file goes
            put(file, path)
    except OSError as error:
        failure = type(error)(
            f"{path} cannot be written: {reason(error)}. What was there before is unchanged."
        )
        failure.errno = error.errno
        raise failure from error


def reason(error: OSError) -> str:
    """What the system says, without number and name."""
    return os.strerror(error.errno) if error.errno else str(error)


@contextmanager
def partial(path: Path) -> Iterator[Any]:
    """A new file beside `path` to write to, which is gone in the end, unless `put` has given it its name.

    It is held while it is open, so that those of other processes can be told from what a kill has left.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        check_regular(os.stat(path))  # a device must not be replaced
    clear(path.parent, path.name)
    name = str(path.with_name(f"{path.name}.{secrets.token_hex(TOKEN)}.partial"))
    half_written.add(name)  # before it is there: Ctrl-C may come at any moment
    try:
        with _held(name) as file:
            yield file
    finally:
        with suppress(OSError):
            os.unlink(name)
        half_written.discard(name)


def _held(name: str) -> Any:
    """A new file of that name, held."""
    while True:
        file = open(name, "xb")  # noqa: SIM115
        with suppress(OSError):  # a file system without locks: nobody will clear it away there
            hold(file)
        if os.path.exists(name):
            return file
        file.close()  # somebody took it for a leftover in the moment before it was held


def put(file: Any, path: Path) -> None:
    """Give a partial file its name."""
    if locks is None:
        file.close()
    os.replace(file.name, path)


def clear(directory: Path, name: str = "") -> None:
    """Remove what killed processes have left half-written in a directory: of one file, or of any."""
    pattern = f"{glob.escape(name) or '*'}.{'[0-9a-f]' * 2 * TOKEN}.partial"
    for path in directory.glob(pattern):
        with suppress(OSError):  # somebody is writing it
            if locks is None:
                path.unlink()
                continue
            with open(path, "r+b") as file:
                hold(file, wait=False)
                path.unlink()


def hold(file: Any, *, wait: bool = True) -> None:
    """Hold an open file until it is closed, be it by a kill. BlockingIOError if somebody else does, and we do not wait."""
    if locks is not None:
        locks.flock(file, locks.LOCK_EX | (0 if wait else locks.LOCK_NB))
        return
    import msvcrt

    file.seek(1 << 30)  # a byte behind everything that anybody reads
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from None
    finally:
        file.seek(0)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of a file that `np.savez` wrote: without pickle, and without memory beyond the size of the file.

    Sizes and headers are compared with each other before anything is allocated; the checksums tell whether the rest is as
    it was written. An OSError says that there is no such file, a ValueError what is wrong with it, without its name.
    """
    with open_regular(path) as raw:
        size = os.fstat(raw.fileno()).st_size
        try:
            with zipfile.ZipFile(raw) as archive:
                members = {
                    member.filename.removesuffix(".npy"): member for member in archive.infolist()
                }
                _check_members(archive.infolist(), len(members), size)
                return {name: _read_array(archive, member) for name, member in members.items()}
        except Exception as error:  # zipfile has many ways to say that a file is damaged
            raise ValueError(str(error) or type(error).__name__) from error


def _check_members(members: list[zipfile.ZipInfo], names: int, size: int) -> None:
    """What `np.savez` writes is not compressed, and no two members share a name or bytes."""
    if names < len(members):
        raise ValueError("it has two arrays of one name")
    if any(
        m.compress_type != zipfile.ZIP_STORED or m.compress_size != m.file_size for m in members
    ):
        raise ValueError("its arrays are compressed, which those that this package writes are not")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its arrays are said to be larger than the file")


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """An array of plain numbers or text, whose header must be as NumPy writes it."""
    with archive.open(member) as file:
        magic = file.read(10)
        length = int.from_bytes(magic[8:], "little")
        header = (
            NPY_HEADER.fullmatch(file.read(length)) if magic[:8] == b"\x93NUMPY\x01\x00" else None
        )
        if header is None:
            raise ValueError(f"{member.filename!r} is not an array of numbers")
        dtype, shape = (
            np.dtype(header[1].decode()),
            tuple(int(n) for n in header[3].decode().split(",") if n.strip()),
        )
        left = member.file_size - 10 - length
        if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != left:
            raise ValueError(
                f"{member.filename!r} does not have as many bytes as shape {shape} and dtype {dtype} need"
            )
        content = np.empty(left, np.uint8)
        for low in range(0, left, READ_AT_ONCE):
            high = min(low + READ_AT_ONCE, left)
            content[low:high] = np.frombuffer(file.read(high - low), np.uint8)
        return content.view(dtype).reshape(shape, order="F" if header[2] == b"True" else "C")


def take(path: Path, in_use: str) -> Any:
    """The file, held. BlockingIOError, with this sentence, if somebody else has it.

    None where none can be had: nothing can be written there, or the file system has no locks.
    """
    while True:
        try:
            file = open_regular(path, "ab")
        except (NotRegularFileError, IsADirectoryError) as error:
            raise type(error)(
                f"The lock file {path} cannot be used: {reason(error)}. Delete it, and call again."
            ) from None
        except OSError:
            return None
        try:
            hold(file, wait=False)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        except BlockingIOError:
            file.close()
            raise BlockingIOError(in_use) from None
        except FileNotFoundError:
            pass
        except OSError:
            file.close()
            return None
        file.close()  # who had it has removed it in the moment before it was held


def release(file: Any) -> None:
    """Remove it, while nobody else can take it."""
    if file is None or file.closed:
        return
    with suppress(
        OSError
    ):  # Windows removes nothing that is open: then it stays, and belongs to nobody
        if os.fstat(file.fileno()).st_size == 0:  # else it is somebody's file of that name
            os.unlink(file.name)
    file.close()
