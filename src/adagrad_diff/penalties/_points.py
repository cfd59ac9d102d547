"""What users hand to a penalty, as the arrays that its formulas take: the only way in to the kernels.

A kernel neither checks nor converts. It gets arrays of float32 or float64 in the order of the machine, contiguous, writeable
and of the right size, or it is not called.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ..linalg.kernels import plain

quiet = np.errstate(all="ignore")  # a decorator: what overflows is infinite, without a warning


def _first_bad(step: Any) -> Any:
    bad = ~((step > 0.0) & (step < np.inf))
    return int(bad.argmax()) if bad.any() else -1


@plain(small=_first_bad)
def first_bad(step: Any) -> Any:
    """np.argmin((step > 0) & (step < np.inf)) of a vector, or -1 if all of them are"""
    bad = 0
    for i in range(step.size):
        bad += not (step[i] > 0.0) & (step[i] < np.inf)  # also NaN
    for i in range(step.size if bad else 0):
        if not (step[i] > 0.0 and step[i] < np.inf):
            return i
    return -1


def steps(step: Any, z: np.ndarray) -> np.ndarray:
    """The steps, one per entry of z and in its dtype: positive and finite numbers."""
    given = _check.real_array(step, "'step'")
    step = cast(given[:, None] if given.ndim == 1 and z.ndim == 2 else given, z.dtype)
    try:
        full = step if step.shape == z.shape else np.broadcast_to(step, z.shape)
    except ValueError:
        raise ValueError(
            f"'step' must have shape (), (d,), (1, B) or (d, B) for z of shape {z.shape}. Got {given.shape} instead."
        ) from None
    if (bad := first_bad(step.ravel())) >= 0:
        raise ValueError(
            f"'step' must be positive and finite, in the {z.dtype} of z. Got {given.ravel()[bad]} instead."
        )
    return full if full.flags.carray else full.copy()


@quiet
def cast(array: np.ndarray, dtype: Any) -> np.ndarray:
    """The array in another precision, where what is too large is infinite and what is too small zero."""
    return array.astype(dtype, copy=False)


def check_out(out: Any, z: np.ndarray) -> None:
    """Raise unless the proximal point of z can be written into `out`."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"'out' must be None or an array. Got {type(out).__name__} instead.")
    if out.shape != z.shape or out.dtype != z.dtype:
        raise ValueError(
            f"'out' must have the shape and dtype of z, {z.shape} and {z.dtype}. Got {out.shape} and {out.dtype} instead."
        )
    if not out.flags.writeable:
        raise ValueError("'out' is read-only: the result cannot be written into it.")


def can_hold(out: np.ndarray, z: np.ndarray, step: np.ndarray) -> bool:
    """Whether a kernel may write into `out` while it reads z and the steps. `out` may be z itself."""
    mine = type(out) is np.ndarray and out.flags.carray
    return (
        mine
        and (out is z or not np.may_share_memory(out, z))
        and not np.may_share_memory(out, step)
    )


def answer(result: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """What a user's method has returned, as an array of real numbers of the given shape."""
    array = _check.real_array(result, f"What {what} returns")
    if array.shape != shape:
        raise ValueError(f"{what} must return shape {shape}. Got {array.shape} instead.")
    return array
