"""Files that a computation can be resumed from: arrays and a JSON header, no pickle.

A file is replaced in one step, carries a checksum that is verified before anything in it is used,
and is read without more memory than it has bytes. One computation at a time uses a `Checkpoint`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from .._files import as_path, partial, read_arrays, reason, release, take, write

RESTART = "Delete the checkpoint to begin again, or choose another 'checkpoint'"
Content = tuple[dict[str, Any], dict[str, np.ndarray]]  # a header, and arrays by name


def save(path: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a header with a "format", and arrays. The old file stays until the new one is complete."""
    text = json.dumps(header)
    about = {"header": np.array(text), "sha256": np.array(checksum(text, arrays))}
    write(as_path(path, "path"), lambda file: np.savez(file, **arrays, **about))  # type: ignore[arg-type]


def load(path: Path, file_format: str) -> Content:
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


class Checkpoint:
    """The checkpoint file of a run, locked until it is closed."""

    def __init__(self, path: Any, file_format: str, every: float = 0.0):
        """`every` is the number of seconds after which `due` says that it is time to write."""
        self.path, self.every, self.format = as_path(path, "checkpoint"), every, file_format
        self.lock_path = self.path.with_name(f"{self.path.name}.lock")
        self._lock = take(
            self.lock_path,
            f"The checkpoint {self.path} is in use by another run. Wait for its end, or choose "
            "another 'checkpoint'.",
        )
        try:
            self.content = self._read()
        except BaseException:
            self.close()
            raise
        self.due = perf_counter() + every  # when to write next

    def check_writable(self) -> None:
        """Raise if the file cannot be created, and remove what a kill has left half-written."""
        with self._explained(), partial(self.path):
            pass

    def close(self) -> None:
        """Let other runs use the file."""
        release(self._lock)

    def write(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace the content of the file."""
        with self._explained():
            save(self.path, {"format": self.format, **header}, arrays)
        self.due = perf_counter() + self.every

    def refusal(self, what: str) -> ValueError:
        """Return the error for a file that belongs to something else."""
        return ValueError(
            f"The checkpoint {self.path} cannot be continued by this call: {what}. Give what it was made "
            "with, or choose another 'checkpoint'; nothing was changed in this one."
        )

    def unreadable(self, error: Exception) -> ValueError:
        """Return the error for a file whose content cannot be used."""
        why = str(error)[:200]
        return ValueError(f"{self.path} is no readable checkpoint: {why}. {RESTART}.")

    def _read(self) -> Content | None:
        try:
            return load(self.path, self.format)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OSError(
                f"The checkpoint {self.path} cannot be read: {reason(error)}. {RESTART}."
            ) from error
        except Exception as error:  # whatever is in the file
            raise self.unreadable(error) from error

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Explain errors of writing."""
        try:
            yield
        except OSError as error:
            cause: Any = error.__cause__ or error
            good = (
                "The last good one is unchanged" if os.path.isfile(self.path) else "There is none"
            )
            failure = type(error)(
                f"The checkpoint {self.path} cannot be written: {reason(cause)}. {good}. Make room or "
                "choose another 'checkpoint', and call again."
            )
            failure.errno = error.errno
            raise failure from error
