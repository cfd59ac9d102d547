"""Samples from a file, or a data set by its name: numbers, the names of their columns, and the target as it stands there."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import load, names
from ._columns import Feature, encoded, plain
from ._csv import refuse_twice
from ._formats import COMMON_TARGETS, Contents, digest, read
from ._matrices import joined, scaled
from ._registry import DataError

SHOWN_COLUMNS = 20  # that a sentence lists


@dataclass(frozen=True, eq=False)
class Table:
    """Samples and their target.

    Attributes
    ----------
    A : ndarray or csr_array (samples, features), float64
    y : ndarray (samples,)
        Numbers (float64) or words (objects).
    features : list of Feature
        Which column, and which category of it, each column of A is.
    target : str
        What y is called.
    name, kind, sha256 : str
        Of the file or data set.
    columns : int
        How many columns the file has beside the target.
    left_out : list of str
        Columns that are constant.
    notes : list of str
        What was decided on the way, a sentence each.
    """

    A: Any
    y: np.ndarray
    features: list[Feature]
    target: str
    name: str
    kind: str
    sha256: str
    columns: int
    left_out: list[str]
    notes: list[str]


def read_table(
    data: str | os.PathLike[str],
    target: str | None = None,
    *,
    drop: Sequence[str] = (),
    missing: Sequence[str] = (),
    header: bool = True,
    impute: bool = False,
    standardize: bool = False,
    directory: str | os.PathLike[str] | None = None,
) -> Table:
    """Read samples and a target.

    Parameters
    ----------
    data : path or name
        A CSV, Parquet, svmlight or NPZ file (it is known by its content; gzip, bzip2 and xz are unpacked), or the name of a
        data set of `adagrad_diff.datasets`.
    target : str, optional
        The column to predict. svmlight files and data sets have their own; in NPZ files "y", "b" or "target" is it.
    drop : sequence of str
        Columns to leave out.
    missing : sequence of str
        Words of a CSV file that stand for a missing value, beside the empty one, NA and the like.
    header : bool
        Whether the first line of a CSV file names the columns. If not, they are called 1, 2, ...
    impute : bool
        Whether to fill in what is missing: numbers by the median of their column, words by a category of their own. If not,
        a missing value is an error. One in the target always is.
    standardize : bool
        Whether columns of numbers get mean 0 and standard deviation 1; sparse ones keep their zeros and get root mean square
        1. Indicators of categories stay 0 and 1.
    directory : path, optional
        Where to look for a data set first.

    Returns
    -------
    Table
        Words are indicators in it, one per category, and one only if there are two.

    Raises
    ------
    DataError
        A ValueError: a sentence with the column and the row (the first is 1), and what to do.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("age,city,ill", "40,Rome,no", "61,Oslo,yes", "52,Bern,no", sep="\\n", file=file, flush=True)
    ...     table = read_table(file.name, "ill")
    >>> [str(feature) for feature in table.features], table.A[0].tolist(), table.y.tolist()
    (['age', 'city=Bern', 'city=Oslo', 'city=Rome'], [40.0, 0.0, 0.0, 1.0], ['no', 'yes', 'no'])
    """
    path = Path(data)
    try:
        there = path.exists()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise DataError(f"There is no file {str(data)!r}.") from error
    if there:
        contents, name, sha256 = (
            read(path, header=header, missing=missing),
            path.name,
            digest(path) if path.is_file() else "",
        )
    elif str(data) in names():
        known_set = load(str(data), directory)
        contents, name, sha256 = (
            Contents("data set", None, known_set.A, known_set.b),
            known_set.name,
            str(known_set.sha256),
        )
    else:
        raise DataError(
            f"There is no file {str(data)!r}, and no data set of that name. The data sets are: {', '.join(names())}."
        )
    if contents.frame is None:
        if target is not None or drop:
            option = "--target" if target is not None else "--drop"
            raise DataError(
                f"{name!r} has a target and features without names: {option} is for tables."
            )
        A, features = scaled(contents.A, repr(name), standardize)
        y = _target(contents.b, "label", repr(name))
        return Table(A, y, features, "label", name, contents.kind, sha256, len(features), [], [])
    frame, target = _chosen(contents, target, drop, repr(name))
    y = _target(plain(frame[target], target, repr(name)), target, repr(name))
    frame = frame.drop(columns=target)
    parts = dict(
        zip(
            frame.columns,
            encoded(frame, repr(name), impute=impute, standardize=standardize),
            strict=True,
        )
    )
    features = [feature for _, found in parts.values() for feature in found]
    left_out = [column for column, (_, found) in parts.items() if not found]
    if not features:
        raise DataError(
            f"{name!r} has no column beside the target {target!r} that is not constant."
        )
    A = joined([block for block, found in parts.values() if found])
    return Table(
        A,
        y,
        features,
        target,
        name,
        contents.kind,
        sha256,
        len(parts),
        left_out,
        list(contents.notes),
    )


def _chosen(
    contents: Contents, target: str | None, drop: Sequence[str], file: str
) -> tuple[Any, str]:
    """The columns that are used, and the name of the target."""
    frame = contents.frame
    columns = list(frame.columns)
    refuse_twice(columns, file)
    if not len(frame):
        raise DataError(f"{file} names columns, but has no rows.")
    if target is None and contents.kind == "NPZ":
        target = next((column for column in COMMON_TARGETS if column in columns), None)
    if target is None:
        raise DataError(
            f"Say which column of {file} is to be predicted, with --target. {_listed(columns)}"
        )
    for column, option in ((target, "--target"), *((column, "--drop") for column in drop)):
        if column not in columns:
            near = difflib.get_close_matches(column, columns, 1)
            hint = f"Did you mean {near[0]!r}?" if near else _listed(columns)
            raise DataError(f"{file} has no column {column!r}, which {option} names. {hint}")
    return frame.drop(columns=[column for column in drop if column != target]), target


def _listed(columns: list[str]) -> str:
    shown = ", ".join(map(repr, columns[:SHOWN_COLUMNS]))
    return f"Its columns are: {shown}{', ...' if len(columns) > SHOWN_COLUMNS else '.'}"


def _target(y: np.ndarray, target: str, file: str) -> np.ndarray:
    gone = np.array([word is None for word in y]) if y.dtype == object else ~np.isfinite(y)
    if gone.any():
        row = int(np.argmax(gone))
        what = "no value" if y.dtype == object or np.isnan(y[row]) else f"the value {y[row]}"
        raise DataError(
            f"The target {target!r} of {file} has {what} in row {row + 1}: remove the rows where it is not known."
        )
    if len(y) < 2:
        raise DataError(
            f"{file} has one row: two are the least from which something can be learned."
        )
    return y
