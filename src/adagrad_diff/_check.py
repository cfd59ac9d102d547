"""Checks of what users pass in. Every error is a sentence: which argument, what is wrong with it, what to do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

MISSING = "remove or impute missing and infinite entries first"
SHOWN_WIDTH = 100  # characters of a value that a message shows
CHECKED_AT_ONCE = (
    1 << 18
)  # entries looked at together, so that checking a large array needs little memory


class InputError(ValueError):
    """What was given cannot be used, and the message says what to do: a mistake of the user's, and none of ours."""


def shown(value: Any) -> str:
    """A value as it is shown in a message: in one line, and not all of a large one."""
    line = " ".join(repr(value).split())
    return line if len(line) <= SHOWN_WIDTH else f"{line[:SHOWN_WIDTH]}..."


def _number(value: Any) -> float:
    """The number, or NaN if it is none: a truth value, a text, a complex number or an array is none."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    if isinstance(value, bool | str | bytes | list | tuple) or kind not in "fiu" or np.ndim(value):
        return np.nan
    try:
        with np.errstate(over="ignore"):  # of extended precision
            return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def positive(value: Any, name: str, owner: str) -> float:
    """A positive finite number, or a sentence saying what it is instead."""
    number = _number(value)
    if not (np.isfinite(number) and number > 0):
        raise InputError(
            f"The {name!r} parameter of {owner} must be a positive number. Got {shown(value)} instead."
        )
    return number


def nonnegative(value: Any, name: str, owner: str) -> float:
    """A finite number >= 0."""
    number = _number(value)
    if not (np.isfinite(number) and number >= 0):
        raise InputError(
            f"The {name!r} parameter of {owner} must be a number >= 0. Got {shown(value)} instead."
        )
    return number


def number(value: Any, name: str, owner: str) -> float:
    """A finite number."""
    result = _number(value)
    if not np.isfinite(result):
        raise InputError(
            f"The {name!r} parameter of {owner} must be a finite number. Got {shown(value)} instead."
        )
    return result


def count(value: Any, name: str, owner: str, least: int = 0) -> int:
    """An integer that is not too small."""
    try:
        number = least - 1 if isinstance(value, bool | np.ndarray) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(
            f"The {name!r} parameter of {owner} must be an integer >= {least}. Got {shown(value)} instead."
        )
    return number


def real_array(value: Any, name: str) -> np.ndarray:
    """An array of real numbers; float32 and float64 are kept as they are, everything else becomes float64."""
    refuse_masked(value, name)
    text = None
    try:
        array = np.asarray(value)
        text = first_text(array)
        if array.dtype == object and text is None:
            array = np.array(array.tolist() if array.ndim else float(value), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{name} must be an array of real numbers. Got {type(value).__name__} instead."
        ) from None
    if text is not None:
        raise InputError(
            f"{name} must be an array of real numbers. It holds text, such as {text!r}."
        )
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} must be real numbers. Got dtype {array.dtype} instead.")
    if array.dtype not in (np.float32, np.float64) or not array.dtype.isnative:
        with np.errstate(over="ignore"):  # of extended precision
            array = array.astype(
                np.float32 if array.dtype.newbyteorder("=") == np.float32 else np.float64
            )
    return array


def refuse_masked(value: Any, name: str) -> None:
    """Raise if something is masked: NumPy would take what is under the mask."""
    parts = value if isinstance(value, list | tuple) else (value,)
    masked = sum(
        int(np.ma.getmaskarray(part).sum()) for part in parts if isinstance(part, np.ma.MaskedArray)
    )
    if masked:
        raise InputError(
            f"{name} has {masked} masked {'entry' if masked == 1 else 'entries'}: {MISSING}."
        )


def first_text(array: np.ndarray) -> str | bytes | None:
    """The first text in an array of objects."""
    return (
        next((v for v in array.flat if isinstance(v, str | bytes)), None)
        if array.dtype == object
        else None
    )


def refuse_text_columns(frame: Any, name: str) -> None:
    """Raise with the name of the first column of a data frame that holds text, or anything else that is no number.

    Missing entries that are no NaN (None, pandas.NA) count as such, too. What is no data frame is left alone.
    """
    if not hasattr(frame, "columns"):
        return
    array = np.asarray(frame)
    if array.ndim != 2 or array.dtype.kind in "fiub":
        return
    for column, values in zip(frame.columns, array.T, strict=True):
        known = [(row, v) for row, v in enumerate(values.tolist()) if not isinstance(v, Real)]
        wrong = next((pair for pair in known if not _missing(pair[1])), None)
        if wrong is not None:
            row, v = wrong
            what = (
                f"text ({v!r} in row {row})"
                if isinstance(v, str | bytes)
                else f"{type(v).__name__} ({v} in row {row})"
            )
            raise InputError(
                f"Column {column!r} of {name} holds {what}: encode it as numbers, or drop it."
            )
        if known:
            raise InputError(
                f"Column {column!r} of {name} contains {known[0][1]} in row {known[0][0]}: {MISSING}."
            )


def _missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def numbers(value: Any, sentence: str) -> np.ndarray:
    """An array of real numbers in float64, or the sentence: truth values and texts are no numbers."""
    try:
        array = real_array(value, "it")
        if np.asarray(value).dtype.kind == "b":
            raise ValueError
    except ValueError:
        raise InputError(sentence) from None
    return array.astype(np.float64)


def finite(array: np.ndarray, name: str, columns: Any = None) -> np.ndarray:
    """Raise with the place of the first NaN or infinite entry, if there is one, by the names of its columns if it has any."""
    rows = max(1, CHECKED_AT_ONCE // max(1, array[:1].size))
    for lo in range(0, len(array), rows):
        bad = ~np.isfinite(array[lo : lo + rows])
        if bad.any():
            place = tuple(int(i) for i in np.argwhere(bad)[0])
            place = (place[0] + lo, *place[1:])
            found = (
                f"{name} contains {array[place]} at index {place if len(place) > 1 else place[0]}"
            )
            if columns is not None:
                found = f"Column {list(columns)[place[1]]!r} of {name} contains {array[place]} in row {place[0]}"
            raise InputError(f"{found}: {MISSING}.")
    return array


def vector(
    value: Any, name: str, length: int, *, what: str = "one value per row of A"
) -> np.ndarray:
    """A finite one-dimensional array of the given length."""
    array = real_array(value, name)
    if array.shape != (length,):
        raise InputError(
            f"{name} must have shape ({length},), {what}. Got shape {array.shape} instead."
        )
    return finite(array, name)


def cast(array: np.ndarray, dtype: Any, name: str, copy: bool = True) -> np.ndarray:
    """A contiguous copy in another precision, or a sentence if a number is too large for it.

    Without `copy`, an array that is contiguous, writeable (as kernels want it) and of that precision is taken as it is.
    """
    with np.errstate(over="ignore", under="ignore"):
        result = np.array(
            array, dtype=dtype, order="C", copy=True if copy or not array.flags.writeable else None
        )
    if result.dtype == array.dtype:
        return result
    places = np.argwhere(np.isinf(result) & ~np.isinf(array))
    if len(places):
        place = tuple(places[0].tolist())
        where = ", ".join(map(str, place))
        raise InputError(
            f"{name}[{where}] is {array[place]}, too large for {dtype}, the precision of the loss."
        )
    return result


def one_of(value: Any, allowed: tuple[Any, ...], name: str, owner: str) -> Any:
    """A member of a short list of strings."""
    if value not in allowed:
        options = ", ".join(repr(a) for a in allowed)
        raise InputError(
            f"The {name!r} parameter of {owner} must be one of {options}. Got {shown(value)} instead."
        )
    return value


def first_where(bad: np.ndarray, array: np.ndarray, sentence: Callable[[int, Any], str]) -> None:
    """Raise `sentence(index, value)` for the first entry that is bad."""
    if bad.any():
        j = int(np.argmax(bad))
        raise InputError(sentence(j, array[j].item()))


def flag(value: Any, name: str, owner: str) -> bool:
    """True or False, and nothing that merely looks like it."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(
            f"The {name!r} parameter of {owner} must be True or False. Got {shown(value)} instead."
        )
    return bool(value)
