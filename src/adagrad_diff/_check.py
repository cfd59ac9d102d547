"""Argument checks: each returns a usable value, or raises an error that says what is wrong."""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

MISSING = "remove or impute missing and infinite entries first"
SHOWN_WIDTH = 100  # characters of a value that a message shows


class InputError(ValueError):
    """An argument cannot be used, and the message says what to do. It is not a bug."""


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
    """Return a finite number that is accepted. Booleans, text and arrays are not numbers."""
    array, result = np.asarray(None if isinstance(value, list | tuple) else value), np.nan
    if array.ndim == 0 and array.dtype.kind in "fiu":
        with np.errstate(over="ignore"):  # of extended precision
            result = float(array)
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


def count(value: Any, name: str, owner: str, least: int = 0, most: float = np.inf) -> int:
    """Return an integer from `least` to `most`."""
    try:
        result = operator.index(value)
    except TypeError:
        result = least - 1
    if isinstance(value, bool) or not least <= result <= most:
        wanted = (
            f"an integer >= {least}" if most == np.inf else f"an integer from {least} to {most}"
        )
        raise _wrong(name, owner, wanted, value)
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
    """Return real numbers: float32 and float64 as they are, everything else as float64."""
    refuse_masked(value, name)
    found = type(value).__name__
    try:
        array = np.asarray(value)
        if array.dtype.kind in "OSU":
            texts = (entry for entry in array.flat if isinstance(entry, str | bytes))
            if (text := next(texts, None)) is not None:
                found = f"text, such as {str(text)!r}: encode it as numbers"
                raise TypeError
            array = array.astype(np.float64) if array.ndim else np.asarray(float(value))
        if array.dtype.kind not in "fiub":
            found = f"dtype {array.dtype}"
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be real numbers. Got {found} instead.") from None
    single = array.dtype.newbyteorder("=") == np.float32
    with np.errstate(over="ignore"):  # of extended precision
        return array.astype(np.float32 if single else np.float64, copy=False)


def refuse_masked(value: Any, name: str) -> None:
    """Raise if entries are masked. NumPy would use the values under the mask."""
    if any(map(np.ma.is_masked, value if isinstance(value, list | tuple) else [value])):
        raise InputError(f"{name} has masked entries: {MISSING}.")


def refuse_text_columns(frame: Any, name: str) -> None:
    """Raise if an entry of a data frame is not a number, with its column. NaN are accepted."""
    if not hasattr(frame, "columns"):
        return
    array = np.asarray(frame)
    if array.ndim != 2 or array.dtype.kind in "fiub":
        return
    for column, values in zip(frame.columns, array.T, strict=True):
        for row, entry in enumerate(values.tolist()):
            if not isinstance(entry, Real):
                raise InputError(
                    f"Column {column!r} of {name} holds {entry!r} in row {row}: encode text as "
                    "numbers, and impute missing entries, or drop the column."
                )


def numbers(value: Any, sentence: str) -> np.ndarray:
    """Return real numbers in float64, or raise with this sentence. Booleans are not numbers."""
    try:
        if np.asarray(value).dtype.kind != "b":
            return real_array(value, "it").astype(np.float64)
    except ValueError:
        pass
    raise InputError(sentence)


def finite(array: np.ndarray, name: str, columns: Any = None) -> np.ndarray:
    """Return the array, or raise with the place of the first entry that is NaN or infinite."""
    if array.size and not np.isfinite([array.min(), array.max()]).all():  # without a copy
        row, *rest = place = _first(~np.isfinite(array))
        where = f"{name} contains {array[place]} at index {place if rest else row}"
        if columns is not None:
            column = list(columns)[rest[0]]
            where = f"Column {column!r} of {name} contains {array[place]} in row {row}"
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
        result = np.array(array, dtype, order="C", copy=always)
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


def entries(good: np.ndarray, array: np.ndarray, name: str, wanted: str) -> None:
    """Raise with the place of the first entry that is not good, and what is wanted."""
    if not good.all():
        j = int(np.argmin(good))
        raise InputError(f"{name}[{j}] is {array[j].item()}. {wanted}.")
