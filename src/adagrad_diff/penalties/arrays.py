"""Arrays of users and of formulas: what penalties get, and trajectories as rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check

if TYPE_CHECKING:
    from .base import Penalty

RELATIVE = 1e-9  # how far outside a set, relative to its size, a point still counts as inside
EPS = float(np.finfo(np.float64).eps)
quiet = np.errstate(all="ignore")  # a decorator: what overflows is infinite, without a warning


def sum_rounding(count: int) -> float:
    """Return twice the relative error that a sum of `count` products can have, in any order."""
    return (count + 8) * EPS


# ---------------------------------------------------------------- arguments


def point(penalty: Penalty, x: Any, name: str = "x") -> np.ndarray:
    """Return x as a contiguous array of shape (d,) or (d, B) whose size fits the penalty."""
    if not (type(x) is np.ndarray and x.dtype.char in "fd" and x.dtype.isnative):
        x = _check.real_array(x, repr(name))
    if not (0 < x.ndim < 3 and x.size):
        raise ValueError(
            f"{name!r} must have shape (d,), or (d, B) for B trajectories, and not be empty. Got shape {x.shape} instead."
        )
    penalty.check_size(len(x))
    array: np.ndarray = x if x.flags.carray else x.copy()
    return array


@quiet
def steps(step: Any, z: np.ndarray) -> np.ndarray:
    """Return positive and finite steps, one per entry of z and in its dtype."""
    given = _check.real_array(step, "'step'")
    step = given[:, None] if given.ndim == 1 and z.ndim == 2 else given
    try:
        full = np.broadcast_to(step.astype(z.dtype, copy=False), z.shape)
    except ValueError:
        raise ValueError(
            f"'step' must have shape (), (d,), (1, B) or (d, B) for z of shape {z.shape}. Got {given.shape} instead."
        ) from None
    bad = ~((full > 0.0) & (full < np.inf))
    if bad.any():
        raise ValueError(
            f"'step' must be positive and finite, in the {z.dtype} of z. "
            f"Got {np.broadcast_to(step, z.shape)[bad][0]} instead."
        )
    return full if full.flags.carray else full.copy()


def check_out(out: Any, z: np.ndarray) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"'out' must be None or an array. Got {type(out).__name__} instead.")
    if out.shape != z.shape or out.dtype != z.dtype:
        raise ValueError(
            f"'out' must have the shape and dtype of z, {z.shape} and {z.dtype}. Got {out.shape} and {out.dtype} instead."
        )
    if not out.flags.writeable:
        raise ValueError("'out' is read-only: the result cannot be written into it.")


def answer(result: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Return the result of a user's method as an array of real numbers of the given shape."""
    array = _check.real_array(result, f"What {what} returns")
    if array.shape != shape:
        raise ValueError(f"{what} must return shape {shape}. Got {array.shape} instead.")
    return array


def check_length(size: int, expected: int, owner: str, what: str, or_one: bool = False) -> None:
    """Raise if vectors of this size do not fit a penalty that has `expected` labels, strengths, ..."""
    if size != expected and not (or_one and expected == 1):
        raise ValueError(
            f"{owner} has {expected} {what}, but there are {size} penalized coordinates."
        )


def per_coordinate(value: Any, name: str, owner: str, least: float = -np.inf) -> np.ndarray:
    """Return one finite number, or one per coordinate, as a float64 vector of length 1 or d."""
    kind = "a finite number" if least == -np.inf else f"a number >= {least:g}"
    sentence = f"The {name!r} parameter of {owner} must be {kind}, or one per coordinate. Got {_check.shown(value)}."
    array = np.atleast_1d(_check.numbers(value, sentence))
    if array.ndim != 1 or array.size == 0 or not ((array >= least) & np.isfinite(array)).all():
        raise ValueError(sentence)
    return array


# ---------------------------------------------------------------- formulas


def tolerance(dtype: Any) -> float:
    """Return how far outside a set, relative to its size, a point of this dtype still counts as inside."""
    return max(RELATIVE, 16 * float(np.finfo(dtype).eps))


def indicator(inside: Any) -> Any:
    """Return 0 where inside, else inf: a number, or one per trajectory."""
    return np.where(inside, 0.0, np.inf)[()]


@quiet
def ratio(size: Any, strength: Any) -> Any:
    """Return size / strength, where a dual norm divided by the strength 0 is inf, unless it is 0 as well."""
    return np.where(size == 0.0, 0.0, np.divide(size, strength))[()]


def column(strength: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return one number per coordinate in a shape that broadcasts against x."""
    return strength[:, None] if x.ndim == 2 else strength


def euclidean(x: np.ndarray) -> Any:
    """Return the Euclidean norm of x, or of each trajectory, summed in double precision."""
    return np.sqrt(np.square(x, dtype=np.float64).sum(axis=0))


def absolute_sum(x: np.ndarray) -> Any:
    """Return the L1 norm of x, or of each trajectory, summed in double precision."""
    return np.abs(x).sum(axis=0, dtype=np.float64)


def largest(x: np.ndarray) -> Any:
    """Return the maximum norm of x, or of each trajectory."""
    return np.abs(x).max(axis=0).astype(np.float64)


# ---------------------------------------------------------------- trajectories as rows


def as_rows(x: np.ndarray) -> np.ndarray:
    """Return one trajectory per row, contiguous and in float64: (d,) becomes (1, d), and (d, B) becomes (B, d)."""
    return np.ascontiguousarray(x.T if x.ndim == 2 else x[None], dtype=np.float64)


def from_rows(values: np.ndarray, x: np.ndarray) -> Any:
    """Return one number or vector per row in the layout of x: the inverse of `as_rows`."""
    return values.T if x.ndim == 2 else values[0]


@quiet
def by_rows(
    solve: Callable[[np.ndarray, np.ndarray], np.ndarray],
    z: np.ndarray,
    step: np.ndarray,
    out: np.ndarray,
) -> None:
    """out = solve(z, step), with trajectories as rows in double precision; rows that are not finite become NaN."""
    rows, metric = as_rows(z), as_rows(step)
    good = np.isfinite(rows).all(axis=1)
    x = np.full_like(rows, np.nan)
    if good.any():
        x[good] = solve(rows[good], metric[good])
    np.copyto(out, from_rows(x, out), casting="same_kind")


def by_row(function: Callable[[np.ndarray], float], y: np.ndarray) -> Any:
    """Return a number for y of shape (d,), one per trajectory for y of shape (d, B)."""
    return from_rows(np.array([function(row) for row in as_rows(y)]), y)
