"""Fetching a file from the LIBSVM page, whole and checked or not at all, within limits of size and time."""

from __future__ import annotations

import hashlib
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from .._files import reason, write
from .._messages import require
from ._registry import DataError, Entry, Unavailable

TIMEOUT = (5, 20)  # seconds to connect, and between two pieces of the answer
LONGEST = 600.0  # seconds for all of it
RECEIVED_AT_ONCE = 1 << 16
BY_HAND = (
    "put it into a directory and name that directory: directory=DIR in Python, --data DIR on the command line, "
    "or ADAGRAD_DIFF_DATA=DIR in the environment"
)


def download(entry: Entry, path: Path) -> None:
    """Fetch the file, check it, and only then write it."""
    content = _fetch(entry)
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        raise _another(entry, entry.compared(found, len(content)))
    keep(content, entry, path)


def keep(content: bytes, entry: Entry, path: Path) -> None:
    """Write what is known to be the file, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, lambda file: file.write(content))
    except OSError as error:
        raise Unavailable(
            ways_out(entry, f"the directory {path.parent} cannot be written: {reason(error)}")
        ) from None


def _fetch(entry: Entry) -> bytes:
    """What the page sends: no more than is expected, and no longer than is bearable."""
    requests, errors = require("requests", "paper"), require("urllib3.exceptions", "paper")
    host, deadline, content = urlsplit(entry.url).hostname, perf_counter() + LONGEST, bytearray()
    try:
        with requests.get(
            entry.url, stream=True, timeout=TIMEOUT, headers={"Accept-Encoding": "identity"}
        ) as response:
            response.raise_for_status()
            read = getattr(
                response.raw, "read1", response.raw.read
            )  # what has come; urllib3 before 2.1 waits for a whole piece
            while piece := read(RECEIVED_AT_ONCE):
                content += piece
                if len(content) > entry.size:
                    raise _another(
                        entry, f"it has more than the {entry.size:,} bytes that were expected"
                    )
                if perf_counter() > deadline:
                    raise Unavailable(
                        ways_out(entry, f"{host} had not sent all of it after {LONGEST:g} seconds")
                    )
    except (requests.RequestException, errors.HTTPError) as error:
        raise Unavailable(ways_out(entry, _reason(error, requests, errors, host))) from None
    return bytes(content)


def _another(entry: Entry, how: str) -> DataError:
    return DataError(
        f"{entry.url} sent another file than expected, which was thrown away: {how}. "
        f"Open the address in a browser to see what it sends. If you get the right file by other means, {BY_HAND}."
    )


def ways_out(entry: Entry, reason: str) -> str:
    """The one message for a file that is not there and cannot be had."""
    return (
        f"{entry.file} is not on this machine and was not fetched: {reason}. Ways out: (1) get {entry.url} by other means, "
        f"{BY_HAND}; (2) stand_in=True: generated data of the same shape instead, marked as a stand-in."
    )


def _reason(error: Exception, requests: Any, errors: Any, host: str | None) -> str:
    """A few words for what requests and urllib3 tell in five nested exceptions."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{host} answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout | errors.TimeoutError):
        return f"{host} did not answer in time"
    if isinstance(error, errors.ProtocolError):
        return f"the connection to {host} broke off"
    if isinstance(error, requests.exceptions.SSLError):
        return f"the certificate of {host} could not be verified"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy could not be reached"
    if isinstance(error, requests.ConnectionError):
        return f"no connection to {host}"
    return f"{type(error).__name__} from {host}"
