"""Files of samples, known by what is in them and not by their names: CSV, Parquet, svmlight and NPZ, compressed ones, too."""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import open_regular, reason
from .._messages import require
from ._csv import read_csv
from ._registry import DataError

HEAD_BYTES = 1 << 16  # of a file that are looked at to see what it is
ZIPPED: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
SVMLIGHT_LINE = re.compile(
    r"(\S+)((?:\s+qid:\d+)?(?:\s+\d+:[^\s:]+)*)\s*(?:#.*)?"
)  # a line of an svmlight file
COMMON_TARGETS = ("y", "b", "target")  # what people call it in NPZ files


class Contents(NamedTuple):
    """What was in a file: a table of columns, or numbers and their targets."""

    kind: str
    frame: Any = None  # a pandas.DataFrame
    A: Any = None
    b: Any = None
    notes: tuple[str, ...] = ()


def read(path: Path, *, header: bool, missing: Sequence[str]) -> Contents:
    """Everything in a file, or a sentence that says what is wrong with it."""
    name = repr(path.name)
    if path.is_dir():
        raise DataError(f"{name} is a directory: name a file.")
    try:
        with opened(path) as file:
            head = file.read(HEAD_BYTES)
        kind = _kind(head, name)
        if kind == "Parquet":
            return Contents(kind, frame=_parquet(path, name))
        with opened(path) as file:
            if kind == "NPZ":
                return Contents(kind, frame=_npz(file, name))
            if kind == "svmlight":
                return Contents(kind, None, *_svmlight(file, name))
            frame, notes = read_csv(file, name, path.suffix, header=header, missing=missing)
            return Contents(kind, frame=frame, notes=notes)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{name} cannot be unpacked: {str(error).rstrip('.')}. Is it complete?"
        ) from error
    except OSError as error:
        raise DataError(f"{name} cannot be read: {reason(error)}.") from error


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The bytes of a file, unpacked if it is compressed."""
    with open_regular(path) as raw:
        start = raw.read(6)
        raw.seek(0)
        unpack = next((unpack for magic, unpack in ZIPPED.items() if start.startswith(magic)), None)
        if unpack is None:
            yield raw
        else:
            with unpack(raw) as file:
                yield file


def _kind(head: bytes, name: str) -> str:
    if not head.strip(b" \t\r\n\xef\xbb\xbf"):
        raise DataError(f"{name} is empty.")
    if head.startswith(b"PAR1"):
        return "Parquet"
    if head.startswith(b"PK\x03\x04"):
        return "NPZ"
    if head.startswith(b"\x93NUMPY"):
        raise DataError(
            f"{name} holds one array without a name: save the samples and their target with numpy.savez(X=, y=)."
        )
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name} is text in UTF-16: save it as UTF-8.")
    if b"\0" in head:
        raise DataError(
            f"{name} is a binary file, but neither Parquet nor NPZ: give a table as CSV, Parquet, svmlight or NPZ."
        )
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError as error:
        where = f"byte {head[error.start]:#04x} at position {error.start}"
        raise DataError(f"{name} is not text in UTF-8 ({where}): save it as UTF-8.") from None
    return "svmlight" if _is_svmlight(text, name) else "CSV"


def _is_svmlight(text: str, name: str) -> bool:
    """Whether the first lines are a label and pairs index:value."""
    lines = [line for line in text.splitlines()[:20] if line.strip() and not line.startswith("#")]
    lines = lines[:-1] or lines  # the last one may have been cut
    found = [SVMLIGHT_LINE.fullmatch(line.strip()) for line in lines]
    if not lines or not all(found) or not any(match and match[2] for match in found):
        return False
    labels = [match[1] for match in found if match]
    if word := next((label for label in labels if not _is_number(label)), None):
        raise DataError(
            f"{name} looks like svmlight, whose labels are numbers, but one is {word!r}: number the classes."
        )
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _svmlight(file: Any, name: str) -> tuple[Any, np.ndarray]:
    from scipy.sparse import csr_array

    reader = require("sklearn.datasets", "paper")
    try:
        A, b = reader.load_svmlight_file(file)
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{name} begins like an svmlight file, but does not go on like one: {error}."
        ) from error
    return csr_array(
        (A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape
    ), b


def _parquet(path: Path, name: str) -> Any:
    pandas = require("pandas", "paper")
    if not (find_spec("pyarrow") or find_spec("fastparquet")):
        raise ModuleNotFoundError(
            f"{name} is a Parquet file, and reading those needs pyarrow, which is not installed: pip install pyarrow"
        )
    try:
        frame = pandas.read_parquet(os.fspath(path))
    except Exception as error:  # of either library, of any kind
        raise DataError(
            f"{name} is a Parquet file that cannot be read: {_first_line(error)}"
        ) from error
    return frame.rename(columns=str)


def _npz(file: Any, name: str) -> Any:
    """The arrays as columns: one of one axis is a column, one of two axes several."""
    pandas = require("pandas", "paper")
    try:
        with np.load(file, allow_pickle=False) as archive:
            if others := [key for key in archive.zip.namelist() if not key.endswith(".npy")]:
                raise ValueError(
                    f"it is a ZIP archive that holds {others[0]!r}: unpack it, or save its table as CSV"
                )
            arrays = {key: archive[key] for key in archive.files}
    except Exception as error:  # zipfile has many ways to say that a file is damaged
        raise DataError(f"{name} is no NPZ file of plain arrays: {_first_line(error)}") from error
    arrays = {key: array for key, array in arrays.items() if array.ndim}
    rows = {key: len(array) for key, array in arrays.items()}
    if (
        not arrays
        or len(set(rows.values())) > 1
        or any(array.ndim > 2 for array in arrays.values())
    ):
        shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "none"
        raise DataError(
            f"The arrays of {name} must be columns of one length, or matrices with as many rows. They are: {shapes}."
        )
    parts = []
    for key, array in arrays.items():
        columns = [key] if array.ndim == 1 else [f"{key}[{j}]" for j in range(array.shape[1])]
        parts.append(pandas.DataFrame(array.reshape(len(array), -1), columns=columns))
    return pandas.concat(parts, axis=1)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".") + "."
