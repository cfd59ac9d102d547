"""Atomic files and locks, and arrays read without pickle and without more memory than the file has bytes."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import math
import os
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
except ImportError:  # on Windows, where an open file can be neither moved nor deleted
    locks = None  # type: ignore[assignment]

TOKEN = (
    8  # random bytes in the name of a partial file, so that no two threads or processes share one
)
READ_AT_ONCE = 1 << 20  # bytes
HEADER_BYTES = 256  # NumPy writes 118 for plain arrays
PLAIN_KINDS = "biufU"  # of NumPy dtypes: numbers and text
SPECIAL_FILES = {
    stat.S_ISFIFO: "a FIFO",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def as_path(value: Any, name: str) -> Path:
    """Return a path, or raise. `open` would take a number for an open file, and close it afterwards."""
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
    """The path is a FIFO, a device or a socket: opening it may wait forever, and reading it may not end."""


def check_regular(status: os.stat_result) -> None:
    """Raise unless the status is that of a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        kind = next(
            (kind for test, kind in SPECIAL_FILES.items() if test(status.st_mode)), "a special file"
        )
        raise NotRegularFileError(f"it is {kind}, not a regular file")


def open_regular(path: str | os.PathLike[str], mode: str = "rb") -> Any:
    """Open a regular file for reading ("rb") or appending ("ab", which creates it), or raise."""
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
    """Replace a file in one step: `fill(file)` writes to another name first."""
    try:
        with partial(path) as file:
            fill(file)
            file.flush()
            os.fsync(
                file.fileno()
            )  # errors of the disk must appear before the old file is replaced
            put(file, path)
    except OSError as error:
        failure = type(error)(
            f"{path} cannot be written: {reason(error)}. What was there before is unchanged."
        )
        failure.errno = error.errno
        raise failure from error


def reason(error: OSError) -> str:
    """Return the description of an error, without its number and path."""
    return os.strerror(error.errno) if error.errno else str(error)


@contextmanager
def partial(path: Path) -> Iterator[Any]:
    """Open a new file in the directory of `path`, and delete it afterwards unless `put` has renamed it.

    It is locked while it is open, which distinguishes it from the files that killed processes leave.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        check_regular(os.stat(path))  # a device must not be replaced
    clear(path.parent, path.name)
    name = str(path.with_name(f"{path.name}.{secrets.token_hex(TOKEN)}.partial"))
    half_written.add(name)  # before it exists, because Ctrl-C may come at any moment
    try:
        with _held(name) as file:
            yield file
    finally:
        with suppress(OSError):
            os.unlink(name)
        half_written.discard(name)


def _held(name: str) -> Any:
    """Create a file and lock it."""
    while True:
        file = open(name, "xb")  # noqa: SIM115
        with suppress(OSError):  # a file system without locks, where `clear` deletes nothing
            hold(file)
        if os.path.exists(name):
            return file
        file.close()  # another process deleted it before it was locked


def put(file: Any, path: Path) -> None:
    """Rename a partial file to its final path."""
    if locks is None:
        file.close()
    os.replace(file.name, path)


def clear(directory: Path, name: str = "") -> None:
    """Delete the partial files that killed processes have left in a directory, of one file or of all."""
    pattern = f"{glob.escape(name) or '*'}.{'[0-9a-f]' * 2 * TOKEN}.partial"
    for path in directory.glob(pattern):
        with suppress(OSError):  # another process is writing it
            if locks is None:
                path.unlink()
                continue
            with open(path, "r+b") as file:
                hold(file, wait=False)
                path.unlink()


def hold(file: Any, *, wait: bool = True) -> None:
    """Lock an open file until it is closed. Raise BlockingIOError if it is locked and `wait` is False."""
    if locks is not None:
        locks.flock(file, locks.LOCK_EX | (0 if wait else locks.LOCK_NB))
        return
    import msvcrt

    file.seek(1 << 30)  # a byte beyond the end of every file, so that reading is not blocked
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from None
    finally:
        file.seek(0)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of a file that `np.savez` wrote.

    Sizes and headers are compared with each other before memory is allocated. Checksums verify the
    contents. An OSError means that the file cannot be opened; a ValueError says what is wrong with it,
    without its name.
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
        except Exception as error:  # zipfile and NumPy raise many kinds for damaged files
            raise ValueError(str(error) or type(error).__name__) from error


def _check_members(members: list[zipfile.ZipInfo], names: int, size: int) -> None:
    """Raise if members share a name or bytes, or are compressed: `np.savez` does not write such files."""
    if names < len(members):
        raise ValueError("it has two arrays of one name")
    if any(
        m.compress_type != zipfile.ZIP_STORED or m.compress_size != m.file_size for m in members
    ):
        raise ValueError("its arrays are compressed, which those that this package writes are not")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its arrays are said to be larger than the file")


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Return an array of plain numbers or text."""
    with archive.open(member) as file:
        np.lib.format.read_magic(file)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file, HEADER_BYTES)
        size = member.file_size - file.tell()
        if dtype.kind not in PLAIN_KINDS or math.prod(shape) * dtype.itemsize != size:
            raise ValueError(
                f"{member.filename!r} has {size} bytes of data, which do not make an array of shape "
                f"{shape} and dtype {dtype}"
            )
        content = np.empty(size, np.uint8)
        for low in range(0, size, READ_AT_ONCE):
            part = file.read(READ_AT_ONCE)
            content[low : low + len(part)] = np.frombuffer(part, np.uint8)
        return content.view(dtype).reshape(shape, order="F" if fortran else "C")


def take(path: Path, in_use: str) -> Any:
    """Open a lock file and lock it. Raise BlockingIOError with this message if it is locked already.

    Return None where files cannot be written, or the file system has no locks.
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
        file.close()  # its owner deleted it before it was locked here


def release(file: Any) -> None:
    """Delete a lock file while it is still locked, and close it."""
    if file is None or file.closed:
        return
    with suppress(OSError):  # Windows cannot delete an open file: there it stays, unlocked
        if os.fstat(file.fileno()).st_size == 0:  # else it is a file of the user with that name
            os.unlink(file.name)
    file.close()


# ------------------------------------------------------------------------------ arrays and a header

Content = tuple[dict[str, Any], dict[str, np.ndarray]]  # a JSON header, and arrays by name


def save_arrays(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a header with a "format", and arrays. The old file stays until the new one is complete."""
    text = json.dumps(header)
    about = {"header": np.array(text), "sha256": np.array(checksum(text, arrays))}
    write(path, lambda file: np.savez(file, **arrays, **about))  # type: ignore[arg-type]


def load_arrays(path: Path, file_format: str) -> Content:
    """Return what a file of this format holds, or raise a ValueError that says what is wrong with it."""
    arrays: dict[str, Any] = dict(read_arrays(path))
    text, sha256 = str(arrays.pop("header")), str(arrays.pop("sha256", ""))
    header = json.loads(text)
    if (found := header.pop("format")) != file_format:
        raise ValueError(f"its format is {str(found)[:80]!r}, not {file_format!r}")
    if sha256 != checksum(text, arrays):
        raise ValueError("its checksum is not that of its content")
    return header, arrays


def checksum(text: str, arrays: dict[str, np.ndarray]) -> str:
    """Return a SHA-256 of everything in a file, names and shapes included."""
    digest = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
