"""Atomic files, locks, and arrays that are read without pickle and within the size of the file."""

from __future__ import annotations

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
    import fcntl
except ImportError:  # on Windows, where an open file can be neither moved nor deleted
    fcntl = None  # type: ignore[assignment]

TOKEN_BYTES = 8  # random bytes in the name of a partial file: it belongs to one thread only
HEADER_BYTES = 256  # the longest header of an array that is read; NumPy writes 118 for plain arrays


def as_path(value: Any, name: str) -> Path:
    """Return a path, or raise. `open` would take a number for a file that is open already."""
    try:
        path = os.fsdecode(value)
    except TypeError:
        path = "\0"
    if "\0" in path:
        raise InputError(
            f"{name!r} must be the path of a file or directory. Got {shown(value)} instead."
        )
    return Path(path)


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise for a FIFO, a device or a socket: opening may wait, and reading may not end."""
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise OSError("it is not a regular file")


def open_regular(path: str | os.PathLike[str]) -> Any:
    """Open a regular file for reading, or raise."""
    check_regular(path)
    return open(path, "rb")


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
    """Open a new file beside `path`, and delete it afterwards unless `put` has renamed it.

    It is locked while it is open, which distinguishes it from the files that killed processes
    leave.
    """
    check_regular(path)  # a device must not be replaced
    clear(path.parent, path.name)
    while True:
        name = str(path.with_name(f"{path.name}.{secrets.token_hex(TOKEN_BYTES)}.partial"))
        half_written.add(name)  # before it exists, because Ctrl-C may come at any moment
        try:
            with open(name, "xb") as file:
                if not _locked(file):
                    continue  # another thread or process took it for the file of a killed one
                yield file
                return
        finally:
            with suppress(OSError):
                os.unlink(name)
            half_written.discard(name)


def _locked(file: Any) -> bool:
    """Lock a new file. Return whether it is still there."""
    try:
        lock(file)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, where `clear` deletes nothing
        pass
    return os.path.exists(file.name)


def put(file: Any, path: Path) -> None:
    """Rename a partial file to its final path."""
    if fcntl is None:
        file.close()
    os.replace(file.name, path)


def clear(directory: Path, name: str = "") -> None:
    """Delete partial files that killed processes have left in a directory, of one file or all."""
    pattern = f"{glob.escape(name) or '*'}.{'[0-9a-f]' * 2 * TOKEN_BYTES}.partial"
    for path in directory.glob(pattern):
        with suppress(OSError), open(path, "r+b") as file:
            lock(file)  # fails if another thread or process is writing it
            if fcntl is None:
                file.close()
            path.unlink()  # while it is locked: a writer that locks it now must find it gone


def lock(file: Any) -> None:
    """Lock an open file until it is closed. Raise BlockingIOError if it is locked already."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    import msvcrt

    file.seek(1 << 30)  # a byte beyond the end of every file, so that reading is not blocked
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from None
    finally:
        file.seek(0)


def take(path: Path, in_use: str) -> Any:
    """Open a lock file and lock it. Raise BlockingIOError with this message if it is in use.

    Return None where files cannot be written, or the file system has no locks.
    """
    if path.exists() and not path.is_file():
        raise OSError(
            f"The lock file {path} cannot be used: it is not a regular file. Delete it, and call "
            "again."
        )
    while True:
        try:
            file = open(path, "ab")  # noqa: SIM115
        except OSError:
            return None
        try:
            lock(file)
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
    with suppress(OSError):  # Windows cannot delete an open file: there it stays
        if os.fstat(file.fileno()).st_size == 0:  # else it is a file of the user with that name
            os.unlink(file.name)
    file.close()


# ------------------------------------------------------------------------------ arrays and a header

Content = tuple[dict[str, Any], dict[str, np.ndarray]]  # a JSON header, and arrays by name


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of a file that `np.savez` wrote.

    Sizes and headers are compared with each other before memory is allocated. Checksums verify the
    contents. An OSError means that the file cannot be opened; a ValueError says what is wrong with
    it, without its name.
    """
    with open_regular(path) as raw:
        try:
            with zipfile.ZipFile(raw) as archive:
                members = archive.infolist()
                if sum(member.file_size for member in members) > os.fstat(raw.fileno()).st_size:
                    raise ValueError("its arrays are said to be larger than the file")
                return {
                    member.filename.removesuffix(".npy"): _read_array(archive, member)
                    for member in members
                }
        except Exception as error:  # zipfile and NumPy raise many kinds for damaged files
            raise ValueError(str(error) or type(error).__name__) from error


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    with archive.open(member) as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file, HEADER_BYTES)
        size = member.file_size - file.tell()
        if math.prod(shape) * dtype.itemsize != size:
            raise ValueError(
                f"{member.filename!r} has {size} bytes of data, which do not make an array of "
                f"shape {shape} and dtype {dtype}"
            )
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def save_arrays(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a header with a "format", and arrays, into a file that is replaced in one step."""
    text = json.dumps(header)
    about = {"header": np.array(text), "sha256": np.array(checksum(text, arrays))}
    write(path, lambda file: np.savez(file, **arrays, **about))  # type: ignore[arg-type]


def load_arrays(path: Path, file_format: str) -> Content:
    """Return what a file of this format holds, or raise a ValueError that says what is wrong."""
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
