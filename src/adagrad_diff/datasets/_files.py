"""Data files: where they are looked for, how they are downloaded, and how they are verified."""

from __future__ import annotations

import bz2
import hashlib
import os
from pathlib import Path

from .._files import as_path, open_regular, reason, write
from ._registry import DataError, Entry, Unavailable, entry_of

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
    return find(entry_of(name, "where"), directory)[0]


def find(entry: Entry, directory: str | os.PathLike[str] | None) -> tuple[Path | None, str]:
    """Return the first place that has a data file, and what kind of place it is."""
    places = {
        "directory": own_file(entry, directory),
        "package": bundled(entry),
        "cache": cache() / entry.file,
    }
    found = ((path, source) for source, path in places.items() if path and path.exists())
    return next(found, (None, "download"))


def fetch(name: str, directory: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of LIBSVM's file, downloading it if it is not there.

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
    folder = cache() if directory is None else as_path(directory, "directory").expanduser()
    path, source = folder / entry.file, bundled(entry)
    if path.exists():
        verified(path, entry)
        return path
    content = verified(source, entry) if source.exists() else _download(entry)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write(path, lambda file: file.write(content))
    except OSError as error:
        problem = f"the directory {folder} cannot be written: {reason(error)}"
        raise unavailable(entry, problem) from None
    return path


def own_file(entry: Entry, directory: str | os.PathLike[str] | None) -> Path | None:
    """Return where the file is in the directory that the argument, or else the variable, names."""
    origin, named = "The 'directory' argument", directory
    if directory is None:
        origin, named = f"The environment variable {VARIABLE}", os.environ.get(VARIABLE)
    if not named:
        return None
    folder = as_path(named, "directory").expanduser()
    if not folder.is_dir():
        raise DataError(
            f"{origin} names {str(folder)!r}, which is not a directory. Create it, or name another."
        )
    return folder / entry.file


def bundled(entry: Entry) -> Path:
    """Return where the package has the file, compressed, if it has it."""
    return Path(__file__).parent / "inside" / f"{entry.file}.bz2"


def verified(path: Path, entry: Entry) -> bytes:
    """Return the content of a file, or raise if it is not the file of the registry."""
    packed = path == bundled(entry)
    remedy = (
        "Install adagrad-diff again." if packed else f"Replace it by {entry.url}, or delete it."
    )
    try:
        with open_regular(path) as file:
            content = bytes(file.read())
        if packed:
            content = bz2.decompress(content)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. {remedy}") from None
    _check(content, entry, f"{path} is damaged or is another file", remedy)
    return content


def _check(content: bytes, entry: Entry, problem: str, remedy: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        raise DataError(
            f"{problem}: expected sha256 {entry.sha256} ({entry.size:,} bytes), found {found} "
            f"({len(content):,} bytes). {remedy}"
        )


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
        raise unavailable(entry, str(error).strip("<>")) from None
    remedy = f"Open the address in a browser to see what it sends. With the right file, {BY_HAND}."
    _check(
        content, entry, f"{entry.url} sent another file than expected, which was discarded", remedy
    )
    return content


def unavailable(entry: Entry, problem: str) -> Unavailable:
    """Return the error about a file that is not there."""
    return Unavailable(
        f"{entry.file} is not on this machine and was not downloaded: {problem}. Ways out: (1) get "
        f"{entry.url} by other means, {BY_HAND}; (2) stand_in=True: generated data of the same "
        "shape, marked as a stand-in."
    )
