"""From columns of anything to columns of numbers: words become indicators, what cannot be a number is named in a sentence."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from .._messages import require
from ._registry import DataError

FEW_CATEGORIES = 20  # however few rows there are: more than that in more than half of the rows is no category but a name
MOSTLY_NUMBERS = 0.5  # of its words: a column of numbers, then, with something else in it
LARGEST_VALUE = 1e100  # whose square, and a sum of such, is finite
A_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?")
NO_VALUE = "(missing)"  # the category of words that are not there


@dataclass(frozen=True)
class Feature:
    """A column of numbers: (value - shift) / scale of a column of the file, or of the indicator of one of its categories."""

    column: str
    category: str | None = None
    shift: float = 0.0
    scale: float = 1.0

    def __str__(self) -> str:
        return self.column if self.category is None else f"{self.column}={self.category}"


def plain(series: Any, column: str, file: str) -> Any:
    """Numbers with NaN (float64), or words with None (objects): what a column holds, or a sentence if it holds neither."""
    pandas = require("pandas", "paper")
    kind = (
        series.dtype.kind
        if isinstance(series.dtype, np.dtype)
        else getattr(series.dtype, "kind", "O")
    )
    if kind in "mM" or isinstance(series.dtype, pandas.PeriodDtype):
        raise DataError(
            f"{_of(column, file)} holds dates or times: turn them into numbers, or {_drop(column)}."
        )
    if kind in "biuf" and not isinstance(series.dtype, pandas.CategoricalDtype):
        return series.to_numpy(np.float64, na_value=np.nan)
    values = series.astype(object).to_numpy()
    there = ~pandas.isna(values) if values.ndim == 1 else np.ones(len(values), bool)
    known = values[there]
    if known.size and all(isinstance(value, Real | Decimal | np.bool_) for value in known):
        numbers = np.full(len(values), np.nan)
        numbers[there] = known.astype(np.float64)
        return numbers
    for row in np.flatnonzero(there):
        if not isinstance(values[row], str):
            what = type(values[row]).__name__
            raise DataError(
                f"{_of(column, file)} holds a {what} in row {row + 1}: turn it into numbers, or {_drop(column)}."
            )
    words = np.full(len(values), None, object)
    words[there] = [word.strip() for word in known]
    _refuse_mixture(words, column, file)
    return words


def _refuse_mixture(words: np.ndarray, column: str, file: str) -> None:
    """Words among which there are more numbers than others, and words that are dates."""
    pandas = require("pandas", "paper")
    rows = np.flatnonzero(words != None)  # noqa: E711
    numbers = (
        pandas.to_numeric(pandas.Series(words[rows], dtype=object), errors="coerce")
        .notna()
        .to_numpy()
    )
    if rows.size and numbers.mean() >= MOSTLY_NUMBERS and not numbers.all():
        row = rows[np.argmin(numbers)]
        word = words[row]
        raise DataError(
            f"{_of(column, file)} holds numbers, but {word!r} in row {row + 1}: mend it, or say that this is a missing value "
            f"(--missing {shlex.quote(word)}), or {_drop(column)}."
        )
    if rows.size and all(A_DATE.fullmatch(word) for word in words[rows[:100]]):
        raise DataError(
            f"{_of(column, file)} holds dates, such as {words[rows[0]]!r}: turn them into numbers, or {_drop(column)}."
        )


def encoded(
    frame: Any, file: str, *, impute: bool, standardize: bool
) -> Iterator[tuple[Any, list[Feature]]]:
    """Each column of a frame as an array (rows, 1) of numbers, or as a sparse one of indicators, with its features.

    A constant says nothing that the intercept does not: it yields an array without a column.
    """
    for column in frame.columns:
        values = plain(frame[column], column, file)
        if values.dtype == object:
            yield _indicators(_complete_words(values, column, file, impute), column, file)
        else:
            values = _complete_numbers(values, column, file, impute)
            constant = values.min() == values.max()
            shift, scale = (
                (float(values.mean()), float(values.std()))
                if standardize and not constant
                else (0.0, 1.0)
            )
            if scale == 0.0:  # it varies by less than rounding
                constant, scale = True, 1.0
            features = [] if constant else [Feature(column, None, shift, scale)]
            yield ((values - shift) / scale)[:, None][:, : len(features)], features


def _complete_words(words: np.ndarray, column: str, file: str, impute: bool) -> np.ndarray:
    gone = words == None  # noqa: E711
    if gone.any():
        if not impute:
            raise DataError(
                f"{_of(column, file)} has no value in row {np.argmax(gone) + 1}: {_complete(column, 'as a category')}."
            )
        words = np.where(gone, NO_VALUE, words)
    return words


def _complete_numbers(values: np.ndarray, column: str, file: str, impute: bool) -> np.ndarray:
    gone, size = np.isnan(values), np.abs(values)
    if gone.all():
        raise DataError(f"{_of(column, file)} has no value in any row: {_drop(column)}.")
    if gone.any():
        if not impute:
            where = f"in row {np.argmax(gone) + 1}" + (
                f" and {gone.sum() - 1} more" if gone.sum() > 1 else ""
            )
            raise DataError(
                f"{_of(column, file)} has no value {where}: {_complete(column, 'by the median')}."
            )
        values = np.where(gone, np.median(values[~gone]), values)
    if (large := np.where(gone, 0.0, size) > LARGEST_VALUE).any():
        row = int(np.argmax(large))
        raise DataError(
            f"{_of(column, file)} holds {values[row]} in row {row + 1}: mend it, use other units, or {_drop(column)}."
        )
    return values


def _indicators(words: np.ndarray, column: str, file: str) -> tuple[Any, list[Feature]]:
    """One column per category, or of two categories the second only."""
    from scipy.sparse import csr_array

    categories, codes = np.unique(words.astype(str), return_inverse=True)
    if len(categories) > max(FEW_CATEGORIES, len(words) / 2):
        raise DataError(
            f"{_of(column, file)} holds {len(categories)} different words in {len(words)} rows, such as "
            f"{str(categories[0])!r}: that is a name, not a category. You may {_drop(column)}."
        )
    first = 1 if len(categories) <= 2 else 0
    rows = np.flatnonzero(codes >= first)
    shape = (len(words), len(categories) - first)
    matrix = csr_array((np.ones(len(rows)), (rows, codes[rows] - first)), shape=shape)
    return matrix, [Feature(column, str(category)) for category in categories[first:]]


def _of(column: str, file: str) -> str:
    return f"Column {column!r} of {file}"


def _drop(column: str) -> str:
    return f"leave it out with --drop {shlex.quote(column)}"


def _complete(column: str, how: str) -> str:
    return f"fill it in, let --impute do so ({how}), or {_drop(column)}"
