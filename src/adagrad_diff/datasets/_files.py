"""Data files: where they are looked for, how they are downloaded, and that each is the file it should be."""

from __future__ import annotations

import bz2
import hashlib
import os
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path

from .._files import as_path, open_regular, reason, write
from .._messages import warn
from ._registry import DataError, DataWarning, Entry, Unavailable, entry_of

VARIABLE = "ADAGRAD_DIFF_DATA"
WAIT_SECONDS = 20  # for a connection, and for each part of the answer
BY_HAND = (
    "put it into a directory and name that directory: directory=DIR in Python, --data DIR on the "
    f"command line, or {VARIABLE}=DIR in the environment"
)


def cache() -> Path:
    """Return the directory of downloaded files: adagrad-diff in XDG_CACHE_HOME, or in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "adagrad-diff"


def where(name: str, directory: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file that `load` would read, or None if it is not on this machine.

    The file is not opened. `load` checks that it is the right one. A file of the package ends in
    .bz2; `fetch` writes LIBSVM's text.
    """
    entry = entry_of(name, "where")
    path = own_file(entry, directory) or bundled(entry) or cache() / entry.file
    return path if path.exists() else None


def fetch(name: str, directory: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of LIBSVM's file in the cache, downloading it if it is missing or damaged.

    Parameters
    ----------
    name : str
        One of `names()`. What comes with the package is written from there, without a network.
    directory : path, optional
        Where to put the file, instead of the cache. A file that is already there is kept if it is
        the right one, and an error if it is not.

    Raises
    ------
    DataError
        If the file cannot be downloaded, or does not have the known SHA-256 (it is discarded).
    """
    entry = entry_of(name, "fetch")
    if directory is None:
        return cached(entry)[0]
    path = as_path(directory, "directory").expanduser() / entry.file
    if path.exists():
        verified(path, entry)
    else:
        _obtain(entry, path)
    return path


def own_file(entry: Entry, directory: str | os.PathLike[str] | None) -> Path | None:
    """Return the file in the directory that the argument, or else the variable, names."""
    named = os.environ.get(VARIABLE) if directory is None else directory
    if not named:
        return None
    folder = as_path(named, "directory").expanduser()
    if not folder.is_dir():
        origin = "The 'directory' argument"
        if directory is None:
            origin = f"The environment variable {VARIABLE}"
        raise DataError(
            f"{origin} names {str(folder)!r}, which is not a directory. Create it, or name another."
        )
    path = folder / entry.file
    return path if path.exists() else None


def bundled(entry: Entry) -> Path | None:
    """Return the compressed file in the package, or None."""
    with as_file(files(__package__) / "inside" / f"{entry.file}.bz2") as path:
        return path if entry.inside else None


def cached(entry: Entry, *, download: bool = True) -> tuple[Path, str]:
    """Return the file in the cache, and "cache" or "download". A damaged one is replaced."""
    path = cache() / entry.file
    if path.exists():
        try:
            verified(path, entry)
            return path, "cache"
        except DataError as error:
            if not download:
                raise
            warn(f"{error} It is in the cache, and is downloaded again.", DataWarning)
    elif not download:
        raise Unavailable(_ways_out(entry, "download=False forbids it"))
    _obtain(entry, path)
    return path, "download"


def verified(path: Path, entry: Entry) -> bytes:
    """Return the content of a file, or raise if it is not the file of the registry."""
    packed, remedy = path.name != entry.file, f"Replace it by {entry.url}."
    if packed:
        remedy = "Install adagrad-diff again."
    try:
        with open_regular(path) as file:
            content = bytes(file.read())
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}. {remedy}") from None
    if packed:
        with suppress(OSError, ValueError):
            content = bz2.decompress(content)
    _check(content, entry, f"{path} is damaged or is another file", remedy)
    return content


def _check(content: bytes, entry: Entry, problem: str, remedy: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        raise DataError(
            f"{problem}: expected sha256 {entry.sha256} ({entry.size:,} bytes), found {found} "
            f"({len(content):,} bytes). {remedy}"
        )


def _obtain(entry: Entry, path: Path) -> None:
    """Write LIBSVM's file, from the package or else from its page."""
    source = bundled(entry)
    content = _download(entry) if source is None else verified(source, entry)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, lambda file: file.write(content))
    except OSError as error:
        problem = f"the directory {path.parent} cannot be written: {reason(error)}"
        raise Unavailable(_ways_out(entry, problem)) from None


def _download(entry: Entry) -> bytes:
    """Return the file of the LIBSVM page: https only, no redirects, no more bytes than expected."""
    from http.client import HTTPException
    from urllib import request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.HTTPSHandler,  # neither HTTPHandler nor HTTPRedirectHandler
        request.HTTPErrorProcessor,
        request.HTTPDefaultErrorHandler,
        request.UnknownHandler,
    ):
        opener.add_handler(handler())
    try:
        with opener.open(entry.url, timeout=WAIT_SECONDS) as response:
            content = bytes(response.read(entry.size + 1))
    except (OSError, HTTPException) as error:
        raise Unavailable(_ways_out(entry, str(error).strip("<>"))) from None
    remedy = f"Open the address in a browser to see what it sends. With the right file, {BY_HAND}."
    _check(
        content, entry, f"{entry.url} sent another file than expected, which was discarded", remedy
    )
    return content


def _ways_out(entry: Entry, problem: str) -> str:
    """Return the message about a file that is not there."""
    return (
        f"{entry.file} is not on this machine and was not downloaded: {problem}. Ways out: (1) get "
        f"{entry.url} by other means, {BY_HAND}; (2) stand_in=True: generated data of the same "
        "shape, marked as a stand-in."
    )
