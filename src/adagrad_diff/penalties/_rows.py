"""Trajectories as rows, and what the sets that are cut out by linear equations share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _check
from ._points import cast
from ._sizes import Rows
from .base import RELATIVE

RESIDUAL_ROUNDING = (
    2.0**-51
)  # the residual of an equation as small as this, relative to its terms, is rounding


def tolerance(dtype: Any) -> float:
    """How far from a set, relative to the terms of its equations, a point of this dtype still counts as inside."""
    return max(RELATIVE, 16 * float(np.finfo(dtype).eps))


def as_rows(x: np.ndarray) -> np.ndarray:
    """One trajectory per row, contiguous and in float64: (d,) becomes (1, d), and (d, B) becomes (B, d)."""
    return np.ascontiguousarray(x.T if x.ndim == 2 else x[None], dtype=np.float64)


def from_rows(rows: np.ndarray, out: np.ndarray) -> None:
    """The inverse of `as_rows`, written into out."""
    rows = rows.T if out.ndim == 2 else rows[0]
    np.copyto(out, rows if out.dtype == np.float64 else cast(rows, out.dtype))


def in_double(solve: Rows, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
    """Solve for each trajectory, in float64."""
    rows = as_rows(z)
    x = np.empty_like(rows)
    solve(rows, as_rows(step), x)
    from_rows(x, out)


def by_row(function: Callable[[np.ndarray], float], y: np.ndarray) -> Any:
    """A number for y of shape (d,), one per trajectory for y of shape (d, B)."""
    values = [function(row) for row in as_rows(y)]
    return np.array(values) if y.ndim == 2 else values[0]


def normal(a: Any, owner: str) -> np.ndarray:
    """The coefficients of a linear equation: a finite vector that is not zero."""
    array = _check.real_array(a, f"The 'a' parameter of {owner}").astype(np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"The 'a' parameter of {owner} must be one-dimensional. Got shape {array.shape} instead."
        )
    _check.finite(array, f"The 'a' parameter of {owner}")
    if not array.any():
        raise ValueError(
            f"The 'a' parameter of {owner} is zero: the equation a'x = beta then says nothing about x."
        )
    return array


def scaled_equation(a: np.ndarray, beta: float, owner: str) -> tuple[np.ndarray, float]:
    """The same equation with coefficients of at most 1."""
    largest = np.abs(a).max()
    with np.errstate(over="ignore"):
        right = float(beta / largest)
    if not np.isfinite(right):
        raise ValueError(
            f"The 'beta' parameter of {owner}, {beta}, is too large for its 'a', which is at most {largest}: no x is so large."
        )
    return a / largest, right


def check_length(size: int, expected: int, owner: str) -> None:
    """Raise if vectors of this size do not fit a penalty whose definition has `expected` coordinates."""
    if size != expected:
        raise ValueError(
            f"{owner} is a set of vectors with {expected} coordinates, but there are {size} penalised coordinates."
        )
