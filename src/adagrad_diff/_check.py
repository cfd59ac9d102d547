"""Checks of what users pass in. Every error is a sentence: which argument, what is wrong with it, what to do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

CHUNK = 1 << 18  # entries looked at together, so that checking a large array needs little memory


def _number(value: Any) -> float:
    """The number, or NaN if it is none: neither a truth value nor a text nor an array of numbers is one."""
    try:
        array = np.asarray(value)
        if array.ndim or array.dtype.kind not in "iufO" or isinstance(array.item(), bool | str | bytes):
            return np.nan
        with np.errstate(over="ignore"):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def positive(value: Any, name: str, owner: str) -> float:
    """A positive finite number, or a sentence saying what it is instead."""
    number = _number(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"The {name!r} parameter of {owner} must be a positive number. Got {value!r} instead.")
    return number


def nonnegative(value: Any, name: str, owner: str) -> float:
    """A finite number >= 0."""
    number = _number(value)
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(f"The {name!r} parameter of {owner} must be a number >= 0. Got {value!r} instead.")
    return number


def number(value: Any, name: str, owner: str) -> float:
    """A finite number."""
    result = _number(value)
    if not np.isfinite(result):
        raise ValueError(f"The {name!r} parameter of {owner} must be a finite number. Got {value!r} instead.")
    return result


def count(value: Any, name: str, owner: str, least: int = 0) -> int:
    """An integer that is not too small."""
    try:
        number = least - 1 if isinstance(value, bool | np.ndarray) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"The {name!r} parameter of {owner} must be an integer >= {least}. Got {value!r} instead.")
    return number


def real_array(value: Any, name: str) -> np.ndarray:
    """An array of real numbers; float32 and float64 are kept as they are, everything else becomes float64."""
    try:
        array = np.asarray(value)
        if array.dtype == object:
            if any(isinstance(item, str | bytes) for item in array.flat):
                raise TypeError("a text, though it may read like a number, is none")
            array = np.array(array.tolist() if array.ndim else float(value), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be an array of real numbers. Got {type(value).__name__} instead.") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers. Got dtype {array.dtype} instead.")
    if array.dtype not in (np.float32, np.float64) or not array.dtype.isnative:
        with np.errstate(over="ignore"):  # a number that is too large for float64 is infinite
            array = array.astype(np.float32 if array.dtype.newbyteorder("=") == np.float32 else np.float64)
    return array


def numbers(value: Any, sentence: str) -> np.ndarray:
    """An array of real numbers in float64, or the sentence: truth values and texts are no numbers."""
    try:
        array = real_array(value, "it")
        if np.asarray(value).dtype.kind == "b":
            raise ValueError
    except ValueError:
        raise ValueError(sentence) from None
    return array.astype(np.float64)


def finite(array: np.ndarray, name: str) -> np.ndarray:
    """Raise with the place of the first NaN or infinite entry, if there is one."""
    rows = max(1, CHUNK // max(1, array[:1].size))
    for lo in range(0, len(array), rows):
        bad = ~np.isfinite(array[lo : lo + rows])
        if bad.any():
            place = tuple(int(i) for i in np.argwhere(bad)[0])
            place = (place[0] + lo, *place[1:])
            raise ValueError(
                f"{name} contains {array[place]} at index {place if len(place) > 1 else place[0]}: "
                "remove or impute missing and infinite entries first."
            )
    return array


def vector(value: Any, name: str, length: int, *, what: str = "one value per row of A") -> np.ndarray:
    """A finite one-dimensional array of the given length."""
    array = real_array(value, name)
    if array.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), {what}. Got shape {array.shape} instead.")
    return finite(array, name)


def cast(array: np.ndarray, dtype: Any, name: str) -> np.ndarray:
    """The array in another precision, or a sentence if a number is too large for it."""
    with np.errstate(over="ignore"):
        result = array.astype(dtype, copy=False)
    first_where(np.isinf(result), array, lambda j, v: f"{name}[{j}] is {v}, too large for the {dtype} of A.")
    return result


def representable(value: Any, dtype: Any, name: str, owner: str) -> np.ndarray:
    """Positive numbers in another precision, or a sentence if one of them is too large or too small for it."""
    array = np.atleast_1d(np.asarray(value, np.float64))
    with np.errstate(over="ignore", under="ignore"):
        result = array.astype(dtype)
    for bad, size in ((np.isinf(result), "large"), (result == 0, "small")):
        if bad.any():
            value, kind = array[bad][0], np.dtype(dtype)
            raise ValueError(f"The {name!r} parameter of {owner} is {value}, too {size} for the {kind} of x.")
    return result


def one_of(value: Any, allowed: tuple, name: str, owner: str) -> Any:
    """A member of a short list of strings."""
    if value not in allowed:
        options = ", ".join(repr(a) for a in allowed)
        raise ValueError(f"The {name!r} parameter of {owner} must be one of {options}. Got {value!r} instead.")
    return value


def first_where(bad: np.ndarray, array: np.ndarray, sentence: Callable[[int, Any], str]) -> None:
    """Raise `sentence(index, value)` for the first entry that is bad."""
    if bad.any():
        j = int(np.argmax(bad))
        raise ValueError(sentence(j, array[j].item()))
