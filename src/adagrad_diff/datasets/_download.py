"""Fetching a file from the LIBSVM page, whole and checked or not at all."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .._extras import require
from ._registry import DataError, Entry, Unavailable

TIMEOUT = (5, 20)  # seconds to connect, and between two pieces of the answer
BY_HAND = (
    "put it into a directory and name that directory: directory=DIR in Python, --data DIR on the command line, "
    "or ADAGRAD_DIFF_DATA=DIR in the environment"
)


def download(entry: Entry, path: Path) -> None:
    """Fetch into a temporary file beside `path`, check it there, and only then move it into place."""
    pooch = require("pooch", "paper")
    errors = require("requests.exceptions", "paper")
    http = pooch.HTTPDownloader(timeout=TIMEOUT)

    def checked(url: str, output: str, owner: Any) -> None:
        http(url, output, owner)
        content = Path(output).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if found != entry.sha256:  # pooch would notice as well, and say it at greater length
            raise DataError(
                f"{url} sent another file than expected, which was thrown away: {entry.compared(found, len(content))}. "
                f"Open the address in a browser to see what it sends. If you get the right file by other means, {BY_HAND}."
            )

    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(entry.url, known_hash=entry.sha256, fname=path.name, path=path.parent, downloader=checked)
    except errors.RequestException as error:
        raise Unavailable(ways_out(entry, _reason(error, errors, urlsplit(entry.url).hostname))) from None
    except OSError as error:  # the errors of requests are OSErrors too, and were caught above
        cause = error.strerror or type(error).__name__
        raise Unavailable(ways_out(entry, f"the cache {path.parent} cannot be written: {cause}")) from None


def ways_out(entry: Entry, reason: str) -> str:
    """The one message for a file that is not there and cannot be had."""
    return (
        f"{entry.file} is not on this machine and was not fetched: {reason}. Ways out: (1) get {entry.url} by other means, "
        f"{BY_HAND}; (2) stand_in=True: generated data of the same shape instead, marked as a stand-in."
    )


def _reason(error: Exception, errors: Any, host: str | None) -> str:
    """A few words for what requests tells in five nested exceptions."""
    if isinstance(error, errors.HTTPError) and error.response is not None:
        return f"{host} answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, errors.Timeout):
        return f"{host} did not answer in time"
    if isinstance(error, errors.ChunkedEncodingError):
        return f"the connection to {host} broke off"
    if isinstance(error, errors.SSLError):
        return f"the certificate of {host} could not be verified"
    if isinstance(error, errors.ProxyError):
        return "the proxy could not be reached"
    if isinstance(error, errors.ConnectionError):
        return f"no connection to {host}"
    return f"{type(error).__name__} from {host}"


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Without pooch's account of what it does."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
