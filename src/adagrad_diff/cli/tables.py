"""Tables: pandas reads files, and scikit-learn turns their columns into numbers."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
import shlex
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .. import datasets
from .._files import open_regular
from .._messages import counted, require
from ..datasets import DataError
from .group import Problems, choose, listed

HEAD_LINES, LINE_BYTES = 20, 1 << 16  # of a file, to see what it is
UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
LIBSVM_LINE = re.compile(rb"\s*(#.*|[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)*\s*(#.*)?)\s*")
SEPARATORS = (",", ";", "\t", "|")
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"(?<![\d,])\d+,\d+(?![\d,])"), re.compile(r"\d\.\d")
THOUSANDS_SEPARATOR = r"(?<=\d)[,.' \u00a0\u202f](?=\d{3}(\D|$))"  # separators of thousands
DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?"
MOSTLY_NUMBERS = 0.5  # share of numbers in a column from which its other words are mistakes
MAX_CATEGORIES = 20  # of a column in a short table; otherwise half the number of rows
LARGEST_VALUE = 1e100  # its square, and a sum of such squares, is finite
MISSING_CATEGORY = "(missing)"  # the category of missing words
USUAL_TARGETS = ("y", "b", "target")  # names of the target, if the user names none


@dataclass
class Preparation:
    """How a file becomes numbers, and what users should know about it (`notes`)."""

    drop: tuple[str, ...]
    missing: tuple[str, ...]
    thousands: str | None
    header: bool
    impute: bool
    drop_missing_target: bool
    standardize: bool
    intercept: bool
    penalized: bool
    notes: list[str]


class Table(NamedTuple):
    """Samples. Column j of A is (value - shift[j]) / scale[j] of what labels[j] names."""

    name: str
    target: str
    y: np.ndarray
    A: Any
    labels: list[dict[str, str]]  # "column", and perhaps "category"
    shift: np.ndarray
    scale: np.ndarray


def read_table(data: str, target: str | None, directory: str | None, how: Preparation) -> Table:
    """Return the samples of a file or of a data set of `adagrad_diff.datasets`.

    Words become one indicator per category. There is one fewer if there are two, or if nothing is
    penalized: the coefficients of all of them would not be unique. Numbers get standard deviation
    1, and mean 0 if the matrix is dense and there is an intercept.
    """
    path = Path(data)
    if path.exists():
        name, samples = path.name, read_file(path, how)
    else:
        found = datasets.load(choose(data, datasets.names(), "file or data set"), directory)
        name, samples = found.name, (found.A, found.b)
    if isinstance(samples, pd.DataFrame):
        target, columns = _columns(samples, name, target, how)
        y = columns.pop(target).to_numpy()
        A, labels = _encoded(columns, how)
    elif target or how.drop:
        raise DataError(f"{name!r} has no names of columns: leave out --target and --drop.")
    else:
        (A, y), target = samples, "label"
        labels = [{"column": str(j + 1)} for j in range(A.shape[1])]
    if not abs(A).max() <= LARGEST_VALUE:
        raise DataError(f"{name!r} has values that are not finite: remove their rows.")
    shift, scale = np.zeros(len(labels)), np.ones(len(labels))
    if how.standardize:
        sparse = not isinstance(A, np.ndarray)
        number = np.array(["category" not in label for label in labels])
        scaler = StandardScaler(with_mean=False).fit(A)
        scale = np.where(number, scaler.scale_, 1.0)
        shift = np.where(number & how.intercept & (not sparse), scaler.mean_, 0.0)
        A = A.multiply(1.0 / scale).tocsr() if sparse else (A - shift) / scale
    return Table(name, target, y, A, labels, shift, scale)


# ------------------------------------------------------------------------------ files


def read_file(path: Path, how: Preparation) -> Any:
    """Return a data frame, or the matrix and the labels of a file in LIBSVM's format."""
    try:
        with open_regular(path) as raw, UNPACK.get(path.suffix, nullcontext)(raw) as file:
            lines = [file.readline(LINE_BYTES) for _ in range(HEAD_LINES)]
            lines = [line for line in lines if line.strip()]
            file.seek(0)
            if not lines:
                raise ValueError("it is empty")
            if lines[0].startswith(b"PAR1"):
                require("pyarrow", "cli")
                frame = pd.read_parquet(file)
            elif lines[0].startswith(b"PK\x03\x04"):
                frame = _npz(file)
            elif b":" in lines[-1] and all(map(LIBSVM_LINE.fullmatch, lines)):
                return datasets.read_libsvm(file)
            else:
                frame = _csv(file, b"".join(lines).decode("utf-8-sig", "replace"), how)
    except ImportError:
        raise
    except Exception as error:  # of several libraries, of any kind
        raise DataError(
            f"{path.name!r} cannot be read: {str(error).strip()}. It should be a table (CSV in "
            "UTF-8, Parquet, NPZ), or samples in LIBSVM's format."
        ) from error
    return frame.rename(columns=str)


def _csv(file: Any, head: str, how: Preparation) -> pd.DataFrame:
    """Return the table of a CSV file, whose separator and decimal point are recognized."""
    first = head.splitlines()[0]
    separator = max(SEPARATORS, key=first.count)
    names = [word.strip() for word in next(csv.reader([first], delimiter=separator))]
    if not how.header:
        names = [str(j + 1) for j in range(len(names))]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"it has several columns {listed(twice)}")
    comma = separator == ";" and DECIMAL_COMMA.search(head) and not DECIMAL_POINT.search(head)
    comma = comma or how.thousands == "."
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # of rows longer than the header
        frame = pd.read_csv(
            file,
            sep=separator,
            header=0 if how.header else None,
            names=names,
            index_col=False,
            na_values=list(how.missing),
            thousands=how.thousands,
            decimal="," if comma else ".",
            skipinitialspace=True,
            encoding="utf-8-sig",
            low_memory=False,
        )
    if "" in names:
        how.notes.append("The column without a name holds the names of rows, and is left out.")
        frame = frame.drop(columns="")
    return frame


def _npz(file: Any) -> pd.DataFrame:
    """Return the arrays of a file as columns. A matrix X has the columns X[0], X[1], ..."""
    with np.load(file, allow_pickle=False) as arrays:
        return pd.DataFrame(
            {
                name if array.ndim < 2 else f"{name}[{j}]": column
                for name, array in arrays.items()
                for j, column in enumerate(np.atleast_2d(array.T))
            }
        )


# ------------------------------------------------------------------------------ columns


def _columns(
    frame: pd.DataFrame, file: str, target: str | None, how: Preparation
) -> tuple[str, pd.DataFrame]:
    """Return the name of the target, and the columns that are used as numbers or words."""
    target = target or next((word for word in USUAL_TARGETS if word in frame), None)
    if target is None:
        raise DataError(f"Name the column of {file!r} to predict with --target: {listed(frame)}.")
    problems = Problems()
    for column in (target, *how.drop):
        problems.check(choose, column, frame, "column")
    problems.raise_all()
    if how.drop_missing_target:
        gone = frame[target].isna()
        frame = frame[~gone]
        how.notes.append(f"{counted(gone.sum(), 'row')} without a target left out.")
    if len(frame) < 2:
        raise DataError(f"{file!r} has {counted(len(frame), 'row')}. At least two are needed.")
    columns = {}
    for column, series in frame.items():
        if column == target or column not in how.drop:
            called = f"Column {column!r} of {file!r}"
            columns[column] = problems.check(_values, series, column == target, called, how)
    problems.raise_all()
    return target, pd.DataFrame(columns)


def _values(series: pd.Series, is_target: bool, called: str, how: Preparation) -> pd.Series:
    """Return a column as numbers (with NaN if they are to be imputed) or as words."""
    remedy = f"leave it out with --drop {shlex.quote(str(series.name))}"
    if is_target:
        remedy = "leave such rows out with --drop-missing-target"
    values = series.dropna()
    if not pd.api.types.is_numeric_dtype(values):
        values = values.astype(object).map(str).str.strip()
    numbers = pd.to_numeric(values, errors="coerce").astype(float)
    if numbers.notna().all():
        values = numbers[numbers.abs() <= LARGEST_VALUE]
    elif values.str.fullmatch(DATE).all():
        dates = pd.to_datetime(values, format="ISO8601", utc=True, errors="coerce")
        if dates.isna().any():
            raise DataError(
                f"{called} holds dates such as {values.iloc[0]!r}: write them as 2024-12-31, or "
                f"{remedy}."
            )
        values = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        how.notes.append(f"{called} holds dates, which count as days since 1970-01-01.")
    else:
        plain = values.str.replace(THOUSANDS_SEPARATOR, "", regex=True).str.replace(",", ".")
        if pd.to_numeric(plain, errors="coerce").notna().mean() >= MOSTLY_NUMBERS:
            row = numbers.isna().idxmax()
            word = shlex.quote(values[row])
            raise DataError(
                f"{called} holds numbers, but {values[row]!r} in row {row + 1}: correct it, or "
                f"declare it missing (--missing {word}), or the thousands separator (--thousands), "
                f"or {remedy}."
            )
    values = values.reindex(series.index)
    gone = values.index[values.isna()] + 1
    if len(gone) and (is_target or not how.impute):
        others = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise DataError(
            f"{called} has no usable value in row {gone[0]}{others}: fill it in, let --impute fill "
            f"in columns other than the target, or {remedy}."
        )
    if values.dtype.kind != "f" and not is_target:
        values = values.fillna(MISSING_CATEGORY)
        if values.nunique() > max(MAX_CATEGORIES, len(values) / 2):
            raise DataError(
                f"{called} has {values.nunique()} different words, such as {values.iloc[0]!r}. "
                f"These are names, not categories: {remedy}."
            )
    return values


def _encoded(columns: pd.DataFrame, how: Preparation) -> tuple[Any, list[dict[str, str]]]:
    """Return the matrix of complete numbers and indicators, and the labels of its columns."""
    constant = columns.columns[columns.nunique() < 2]
    if len(constant):
        how.notes.append(f"Constant, and left out: {listed(constant)}.")
        columns = columns.drop(columns=constant)
    if columns.empty:
        raise DataError("There is no column besides the target that varies.")
    numbers = columns.select_dtypes("number").columns
    words = columns.columns.difference(numbers, sort=False)
    encoder = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median"), numbers),
            ("words", OneHotEncoder(drop="if_binary" if how.penalized else "first"), words),
        ]
    )
    labels = [{"column": column} for column in numbers]
    for column in words:
        categories = sorted(set(columns[column]))
        first = 0 if how.penalized and len(categories) > 2 else 1
        labels += [{"column": column, "category": category} for category in categories[first:]]
    return encoder.fit_transform(columns), labels
