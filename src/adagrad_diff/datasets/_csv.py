"""CSV files as people have them: any usual separator, row names, decimal commas; or a sentence."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

from .._messages import require
from ._registry import DataError

SEPARATORS = (",", ";", "\t", "|")
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"(?<![\d,])-?\d+,\d+(?![\d,])"), re.compile(r"\d\.\d")
FRACTION = re.compile(
    r"[-+]?(\d+\.\d*|\.\d+|\d+(\.\d*)?[eE][-+]?\d+)"
)  # a number that nobody calls a column


def read_csv(
    file: Any, name: str, suffix: str, *, header: bool, missing: Sequence[str]
) -> tuple[Any, tuple[str, ...]]:
    """The table in a file that is open for bytes, and what is to be said about it."""
    pandas = require("pandas", "paper")
    lines = [file.readline().decode("utf-8-sig", "replace") for _ in range(20)]
    file.seek(0)
    first = next(line for line in lines if line.strip())
    separator = "\t" if suffix == ".tsv" else max(SEPARATORS, key=first.count)
    comma = (
        separator == ";"
        and DECIMAL_COMMA.search("".join(lines))
        and not DECIMAL_POINT.search("".join(lines))
    )
    options = {
        "sep": separator,
        "encoding": "utf-8-sig",
        "index_col": False,
        "skipinitialspace": True,
        "compression": None,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "error", pandas.errors.ParserWarning
            )  # lines with more fields than names
            names = (
                pandas.read_csv(
                    file, header=None, nrows=1, dtype=str, keep_default_na=False, **options
                )
                .iloc[0]
                .tolist()
            )
            file.seek(0)
            names, notes = (
                _names(names, name) if header else ([str(j + 1) for j in range(len(names))], ())
            )
            frame = pandas.read_csv(
                file,
                header=0 if header else None,
                names=names,
                na_values=list(missing),
                decimal="," if comma else ".",
                low_memory=False,
                **options,
            )
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name} is not text in UTF-8 (byte {error.object[error.start]:#04x}): save it as UTF-8."
        ) from None
    except pandas.errors.ParserWarning:
        raise DataError(
            f"{name} is not a table: its lines have more fields than its header has names."
        ) from None
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, OverflowError) as error:
        said = str(error).removeprefix("Error tokenizing data. C error: ").strip().rstrip(".")
        raise DataError(f"{name} is not a table: {said[:1].lower()}{said[1:]}.") from error
    if notes:  # row names
        frame = frame.drop(columns=names[0])
    return frame, notes


def _names(names: list[str], file: str) -> tuple[list[str], tuple[str, ...]]:
    """The names of the columns. A first one without a name holds the names of the rows, as R and pandas write them."""
    names = [str(name).strip() for name in names]
    if number := next((name for name in names if FRACTION.fullmatch(name)), None):
        raise DataError(
            f"The first line of {file} should name the columns, but holds the number {number}: add a line of names, or say "
            "--no-header and call the columns 1, 2, ..."
        )
    notes = (
        ("The first column has no name: it is taken for the names of the rows, and left out.",)
        if names[0] == ""
        else ()
    )
    names = [name or f"column {j + 1}" for j, name in enumerate(names)]
    refuse_twice(names, file)
    return names, notes if len(names) > 1 else ()


def refuse_twice(names: list[str], file: str) -> None:
    """Each column has a name of its own."""
    if len(set(names)) < len(names):
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise DataError(f"{file} has two columns called {twice!r}: give each its own name.")
