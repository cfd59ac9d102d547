"""Argument checks: each returns a usable value, or raises an error that says what is wrong and how to fix it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

MISSING = "remove or impute missing and infinite entries first"
SHOWN_WIDTH = 100  # characters of a value that a message shows
CHECKED_AT_ONCE = 1 << 18  # entries checked together, so that large arrays need little extra memory


class InputError(ValueError):
    """An argument cannot be used, and the message says what to do: a mistake of the user, not a bug."""


def shown(value: Any) -> str:
    """Return a value as messages show it: in one line of limited width."""
    line = " ".join(repr(value).split())
    return line if len(line) <= SHOWN_WIDTH else f"{line[:SHOWN_WIDTH]}..."


def _wrong(name: str, owner: str, wanted: str, value: Any) -> InputError:
    return InputError(
        f"The {name!r} parameter of {owner} must be {wanted}. Got {shown(value)} instead."
    )


# ------------------------------------------------------------------------------ single values


def number(
    value: Any,
    name: str,
    owner: str,
    wanted: str = "a finite number",
    accepts: Callable[[float], bool] = np.isfinite,
) -> float:
    """Return a finite number that is accepted. Booleans, text, complex numbers and arrays are not numbers."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    result = np.nan
    if (
        not (isinstance(value, bool | str | bytes | list | tuple) or np.ndim(value))
        and kind in "fiu"
    ):
        try:
            with np.errstate(over="ignore"):  # of extended precision
                result = float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    if not (np.isfinite(result) and accepts(result)):
        raise _wrong(name, owner, wanted, value)
    return result


def positive(value: Any, name: str, owner: str) -> float:
    """Return a positive finite number."""
    return number(value, name, owner, "a positive number", lambda x: x > 0)


def nonnegative(value: Any, name: str, owner: str) -> float:
    """Return a finite number >= 0."""
    return number(value, name, owner, "a number >= 0", lambda x: x >= 0)


def fraction(value: Any, name: str, owner: str) -> float:
    """Return a number in [0, 1)."""
    return number(value, name, owner, "a number in [0, 1)", lambda x: 0 <= x < 1)


def count(value: Any, name: str, owner: str, least: int = 0) -> int:
    """Return an integer that is at least `least`."""
    try:
        result = operator.index(value)
    except TypeError:
        result = least - 1
    if isinstance(value, bool | np.ndarray) or result < least:
        raise _wrong(name, owner, f"an integer >= {least}", value)
    return result


def one_of(value: Any, allowed: tuple[Any, ...], name: str, owner: str) -> Any:
    """Return a member of a short list of strings."""
    if value not in allowed:
        raise _wrong(name, owner, f"one of {', '.join(map(repr, allowed))}", value)
    return value


def flag(value: Any, name: str, owner: str) -> bool:
    """Return True or False. Other values, such as 1, are not accepted."""
    if not isinstance(value, bool | np.bool_):
        raise _wrong(name, owner, "True or False", value)
    return bool(value)


# ------------------------------------------------------------------------------ arrays


def real_array(value: Any, name: str) -> np.ndarray:
    """Return an array of real numbers: float32 and float64 as they are, everything else as float64."""
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
    single = array.dtype.newbyteorder("=") == np.float32
    with np.errstate(over="ignore"):  # of extended precision
        return array.astype(np.float32 if single else np.float64, copy=False)


def refuse_masked(value: Any, name: str) -> None:
    """Raise if entries are masked. NumPy would use the values under the mask."""
    parts = value if isinstance(value, list | tuple) else (value,)
    masked = sum(
        int(np.ma.getmaskarray(p).sum()) for p in parts if isinstance(p, np.ma.MaskedArray)
    )
    if masked:
        raise InputError(
            f"{name} has {masked} masked {'entry' if masked == 1 else 'entries'}: {MISSING}."
        )


def first_text(array: np.ndarray) -> str | bytes | None:
    """Return the first text in an array of objects, or None."""
    values = array.flat if array.dtype == object else ()
    return next((value for value in values if isinstance(value, str | bytes)), None)


def refuse_text_columns(frame: Any, name: str) -> None:
    """Raise if a column of a data frame holds text or missing values, with the name of the column.

    Anything that is not a data frame is accepted, and so are NaN.
    """
    if not hasattr(frame, "columns"):
        return
    array = np.asarray(frame)
    if array.ndim != 2 or array.dtype.kind in "fiub":
        return
    for column, values in zip(frame.columns, array.T, strict=True):
        others = [(row, v) for row, v in enumerate(values.tolist()) if not isinstance(v, Real)]
        present = [(row, v) for row, v in others if not _missing(v)]
        if present:
            row, v = present[0]
            what = f"text ({v!r}" if isinstance(v, str | bytes) else f"{type(v).__name__} ({v}"
            raise InputError(
                f"Column {column!r} of {name} holds {what} in row {row}): encode it as numbers, or "
                "drop it."
            )
        if others:
            row, v = others[0]
            raise InputError(f"Column {column!r} of {name} contains {v} in row {row}: {MISSING}.")


def _missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def numbers(value: Any, sentence: str) -> np.ndarray:
    """Return an array of real numbers in float64, or raise with this sentence. Booleans are not numbers."""
    try:
        array = real_array(value, "it")
    except ValueError:
        raise InputError(sentence) from None
    if np.asarray(value).dtype.kind == "b":
        raise InputError(sentence)
    return array.astype(np.float64)


def finite(array: np.ndarray, name: str, columns: Any = None) -> np.ndarray:
    """Return the array, or raise with the place of the first entry that is NaN or infinite."""
    rows = max(1, CHECKED_AT_ONCE // max(1, array[:1].size))
    for lo in range(0, len(array), rows):
        part = array[lo : lo + rows]
        bad = ~np.isfinite(part)
        if bad.any():
            row, *rest = place = _first(bad)
            found, row = f"contains {part[place]}", row + lo
            if columns is not None:
                where = f"Column {list(columns)[rest[0]]!r} of {name} {found} in row {row}"
            else:
                where = f"{name} {found} at index {(row, *rest) if rest else row}"
            raise InputError(f"{where}: {MISSING}.")
    return array


def vector(
    value: Any, name: str, length: int, *, what: str = "one value per row of A"
) -> np.ndarray:
    """Return a finite one-dimensional array of the given length."""
    array = real_array(value, name)
    if array.shape != (length,):
        raise InputError(
            f"{name} must have shape ({length},), {what}. Got shape {array.shape} instead."
        )
    return finite(array, name)


def cast(array: np.ndarray, dtype: Any, name: str, copy: bool = True) -> np.ndarray:
    """Return a contiguous copy in another precision, or raise if a number is too large for it.

    Without `copy`, an array that is contiguous, writeable (as kernels need it) and already of that
    precision is returned itself.
    """
    always = True if copy or not array.flags.writeable else None
    with np.errstate(over="ignore", under="ignore"):
        result = np.array(array, dtype=dtype, order="C", copy=always)
    if result.dtype == array.dtype:
        return result
    bad = np.isinf(result) & ~np.isinf(array)
    if bad.any():
        place = _first(bad)
        raise InputError(
            f"{name}[{', '.join(map(str, place))}] is {array[place]}, too large for {dtype}, the "
            "precision of the loss."
        )
    return result


def _first(bad: np.ndarray) -> tuple[int, ...]:
    """Return the index of the first True."""
    return tuple(np.argwhere(bad)[0].tolist())


def first_where(bad: np.ndarray, array: np.ndarray, sentence: Callable[[int, Any], str]) -> None:
    """Raise `sentence(index, value)` for the first entry that is bad."""
    if bad.any():
        j = int(np.argmax(bad))
        raise InputError(sentence(j, array[j].item()))
