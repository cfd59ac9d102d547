"""Finding a data file: your directory, the package, the cache, the LIBSVM page. None is used before its sha256 is checked."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from .._files import as_path, open_regular, reason
from .._messages import require, warn
from . import _download, _inside
from ._registry import DataError, DataWarning, Entry, Unavailable, entry_of

VARIABLE = "ADAGRAD_DIFF_DATA"


def where(name: str, directory: str | os.PathLike[str] | None = None) -> Path | None:
    """The file that `load` would read: in the user's directory, else inside the package, else in the cache; None if it is
    nowhere.

    The file is not opened: whether it is the right one is checked when it is loaded. Inside the package it is packed, with the
    ending .2bit; `fetch` makes LIBSVM's text of it.
    """
    entry = entry_of(name, "where")
    path = in_directory(entry, directory) or _inside.packed(entry)
    if path is None:
        path = cache() / entry.file
    return path if path.exists() else None


def fetch(name: str, directory: str | os.PathLike[str] | None = None) -> Path:
    """The path of LIBSVM's file in the cache, fetched from its page if it is not there yet or is damaged.

    Parameters
    ----------
    name : str
        One of `names()`. What comes with the package is written from there, without a network.
    directory : path, optional
        Where to put the file, instead of the cache. A file that is there already is kept if it is the right one, and refused
        if it is not.

    Raises
    ------
    DataError
        If the file cannot be fetched, or what was fetched does not have the known sha256 (it is thrown away).
    """
    entry = entry_of(name, "fetch")
    if directory is None:
        return cached_or_fetched(entry)[0]
    path = as_path(directory, "directory").expanduser() / entry.file
    if path.exists():
        check_own(path, entry)
    else:
        _obtain(entry, path)
    return path


def cache() -> Path:
    """The directory that fetched files are kept in."""
    return Path(require("pooch", "paper").os_cache("adagrad-diff"))


def in_directory(entry: Entry, directory: str | os.PathLike[str] | None) -> Path | None:
    """The file in the directory that the user names, by the argument or else by the variable; None if it is not there."""
    named = directory if directory is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return None
    folder = as_path(named, "directory").expanduser()
    origin = (
        "The 'directory' argument"
        if directory is not None
        else f"The environment variable {VARIABLE}"
    )
    try:
        if not folder.is_dir():
            raise DataError(
                f"{origin} names {str(folder)!r}, which is not a directory. Create it, or name another one."
            )
        path = folder / entry.file
        return path if path.exists() else None
    except OSError as error:
        raise DataError(
            f"{origin} names {str(folder)!r}, which cannot be read: {error.strerror}."
        ) from None


def fault(path: Path, entry: Entry) -> str | None:
    """A sentence saying in what way this is not the file of the registry; None if it is."""
    try:
        with open_regular(path) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except OSError as error:
        return f"{path} cannot be read: {reason(error)}."
    return (
        None
        if found == entry.sha256
        else f"{path} is damaged or is another file: {entry.compared(found, size)}."
    )


def check_own(path: Path, entry: Entry) -> None:
    """Refuse a file of the user's that is wrong. It is theirs to replace: we do not touch it."""
    problem = fault(path, entry)
    if problem:
        raise DataError(
            f"{problem} Replace it by {entry.url}, or move it away and it will be fetched."
        )


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
            raise DataError(
                f"{problem} It is in the cache: delete it, or allow it to be fetched again (download=True)."
            )
        warn(f"{problem} It is in the cache, and is fetched again.", DataWarning)
    _obtain(entry, path)
    return path, "download"


def _obtain(entry: Entry, path: Path) -> None:
    """Write the file, from the package or else from the LIBSVM page."""
    if entry.inside:
        _download.keep(_inside.text(entry), entry, path)
    else:
        _download.download(entry, path)
