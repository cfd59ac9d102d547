"""The data sets that come with the package: the UCI splice-junction sequences, at two bits per base.

A packed file has one bit per row for its label (1: +1, 0: -1), filled up to whole bytes, then fifteen bytes per row: sixty
bases, 0 to 3 for the codes 1 to 4. `tools/pack_splice.py` writes them, `inside/NOTICE.md` says where they come from.
"""

from __future__ import annotations

import hashlib
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from ._registry import DataError, Entry

FOLDER, ENDING = "inside", ".2bit"
INSTALL_AGAIN = "Install adagrad-diff again."


def packed(entry: Entry) -> Path | None:
    """The packed file, if this data set comes with the package."""
    if not entry.inside:
        return None
    with as_file(files(__package__) / FOLDER / f"{entry.file}{ENDING}") as path:
        return path


def decoded(entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    """Codes and labels, once the text they stand for is known to be LIBSVM's to the last byte."""
    A, b = unpack(_content(entry), entry.shape)
    _checked(as_text(A, b), entry)
    return A.astype("float64"), b


def text(entry: Entry) -> bytes:
    """LIBSVM's file."""
    return _checked(as_text(*unpack(_content(entry), entry.shape)), entry)


def unpack(content: bytes, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Codes (uint8, 1 to 4) and labels of a packed file."""
    rows, columns = shape
    bits = np.unpackbits(np.frombuffer(content, np.uint8))
    labels, bases = bits[:rows], bits[-2 * rows * columns :].reshape(rows, columns, 2)
    return 1 + 2 * bases[:, :, 0] + bases[:, :, 1], np.where(labels, 1.0, -1.0)


def as_text(codes: np.ndarray, b: np.ndarray) -> bytes:
    """As LIBSVM writes it: every line has the same length, and a blank at its end."""
    rows, columns = codes.shape
    line = "".join(["+1 ", *(f"{j}:?.000000 " for j in range(1, columns + 1)), "\n"]).encode()
    lines = np.tile(np.frombuffer(line, np.uint8), (rows, 1))
    lines[:, 0] = np.where(b > 0, ord("+"), ord("-"))
    lines[:, [place for place, character in enumerate(line) if character == ord("?")]] = (
        ord("0") + codes
    )
    return lines.tobytes()


def _content(entry: Entry) -> bytes:
    path = packed(entry)
    if path is None:
        raise DataError(f"{entry.file} does not come with the package.")
    rows, columns = entry.shape
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}, which comes with the package, cannot be read: {error.strerror}. {INSTALL_AGAIN}"
        ) from None
    if len(content) != (expected := -(-rows // 8) + 2 * rows * columns // 8):
        raise DataError(
            f"{path} is damaged: it has {len(content):,} bytes instead of {expected:,}. {INSTALL_AGAIN}"
        )
    return content


def _checked(content: bytes, entry: Entry) -> bytes:
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        raise DataError(
            f"{packed(entry)} is damaged: as text, {entry.compared(found, len(content))}. {INSTALL_AGAIN}"
        )
    return content
