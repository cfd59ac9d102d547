"""Finding a data file: the user's directory, the cache, the LIBSVM page. No file is used before its sha256 is checked."""

from __future__ import annotations

import hashlib
import os
import warnings
from pathlib import Path

from ..common.extras import require
from ..common.files import as_path
from . import _download
from ._registry import DataError, DataWarning, Entry, Unavailable, entry_of

VARIABLE = "ADAGRAD_DIFF_DATA"


def where(name: str, directory: str | os.PathLike[str] | None = None) -> Path | None:
    """The file that `load` would read: in the user's directory, else in the cache; None if it is in neither.

    The file is not opened: whether it is the right one is checked when it is loaded.
    """
    entry = entry_of(name, "where")
    path = in_directory(entry, directory)
    if path is None:
        path = cache() / entry.file
    return path if path.exists() else None


def fetch(name: str) -> Path:
    """The path of the file in the cache, fetched from the LIBSVM page if it is not there yet or is damaged.

    Raises
    ------
    DataError
        If the file cannot be fetched, or what was fetched does not have the known sha256 (it is thrown away).
    """
    return cached_or_fetched(entry_of(name, "fetch"))[0]


def cache() -> Path:
    """The directory that fetched files are kept in."""
    return Path(require("pooch", "paper").os_cache("adagrad-diff"))


def in_directory(entry: Entry, directory: str | os.PathLike[str] | None) -> Path | None:
    """The file in the directory that the user names, by the argument or else by the variable; None if it is not there."""
    named = directory if directory is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return None
    folder = as_path(named, "directory").expanduser()
    origin = "The 'directory' argument" if directory is not None else f"The environment variable {VARIABLE}"
    try:
        if not folder.is_dir():
            raise DataError(f"{origin} names {str(folder)!r}, which is not a directory. Create it, or name another one.")
        path = folder / entry.file
        return path if path.exists() else None
    except OSError as error:
        raise DataError(f"{origin} names {str(folder)!r}, which cannot be read: {error.strerror}.") from None


def fault(path: Path, entry: Entry) -> str | None:
    """A sentence saying in what way this is not the file of the registry; None if it is."""
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}."
    return None if found == entry.sha256 else f"{path} is damaged or is another file: {entry.compared(found, size)}."


def check_own(path: Path, entry: Entry) -> None:
    """Refuse a file of the user's that is wrong. It is theirs to replace: we do not touch it."""
    problem = fault(path, entry)
    if problem:
        raise DataError(f"{problem} Replace it by {entry.url}, or move it away and it will be fetched.")


def cached_or_fetched(entry: Entry, *, download: bool = True) -> tuple[Path, str]:
    """The file in the cache, with "cache" or "download"; a damaged file there is reported and fetched again."""
    path = cache() / entry.file
    if not path.exists():
        if not download:
            raise Unavailable(_download.ways_out(entry, "download=False forbids it"))
    else:
        problem = fault(path, entry)
        if problem is None:
            return path, "cache"
        if not download:
            raise DataError(f"{problem} It is in the cache: delete it, or allow it to be fetched again (download=True).")
        warnings.warn(f"{problem} It is in the cache, and is fetched again.", DataWarning, stacklevel=3)
    _download.download(entry, path)
    return path, "download"
