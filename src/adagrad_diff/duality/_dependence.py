"""Columns that are simple combinations of others: duplicates, and one-hot columns, which add up to that of the intercept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg import Block
from ._products import two_product

DENOMINATORS = 12  # coefficients are multiples of one over these
MAX_TERMS = 400  # columns in a combination
CLOSE = 1e-6  # how near a coefficient is to such a multiple
WHOLE = 2.0**52  # up to which sums of whole numbers are exact


def follow(movable: Any) -> bool:
    """Return whether each dependent column is exactly a combination of the independent ones.

    Samples without a weight do not count.
    """
    basis, others = (movable.chosen[part] for part in (movable.independent, movable.dependent))
    if not others.size:
        return True
    A, weight = movable.dual.loss.A, movable.dual.weight
    B, N = movable.entries(basis), movable.entries(others)
    coefficients = np.linalg.lstsq(B, N, rcond=None)[0]
    for k, other in enumerate(others):
        single = _single(coefficients[:, k] * np.abs(B).max(axis=0))
        whole = _rational(coefficients[:, k])
        if single is not None:  # a multiple by any number: the quotient of the largest entries
            columns = np.array([basis[single], other])
            row = int(np.argmax(np.abs(B[:, single])))
            factors = np.array([N[row, k], -B[row, single]])
        elif whole is not None and np.count_nonzero(whole[1]) <= MAX_TERMS:
            used = np.flatnonzero(whole[1])
            columns, factors = np.append(basis[used], other), np.append(whole[1][used], -whole[0])
        else:
            return False
        if not A.fold(_vanishes, columns, factors, along=(weight,), merge=_both):
            return False
    return True


def _single(sizes: np.ndarray) -> int | None:
    """Return the place of the only value that is not negligible; None if there are several."""
    places = np.flatnonzero(np.abs(sizes) > CLOSE * np.abs(sizes).max(initial=0.0))
    return int(places[0]) if places.size == 1 else None


def _rational(c: np.ndarray) -> tuple[int, np.ndarray] | None:
    """Return a small q and p with c = p / q up to rounding."""
    for q in range(1, DENOMINATORS + 1):
        p = np.rint(q * c)
        if np.all(np.abs(q * c - p) <= CLOSE):
            return q, p
    return None


def _both(one: bool, other: bool) -> bool:
    return one and other


def _vanishes(block: Block, weight: np.ndarray, columns: np.ndarray, factors: np.ndarray) -> bool:
    """Return whether the combination of columns is zero in a block, by sums without rounding."""
    features = block.shape[1]
    rows = np.array(block.entries(np.arange(block.shape[0]), np.minimum(columns, features - 1)))
    rows[:, columns == features] = 1.0
    rows = rows[weight > 0]
    if columns.size == 2:  # a multiple: products as pairs are equal if they are
        one, other = (
            two_product(rows[:, k], np.full(len(rows), sign * factors[k]))
            for k, sign in ((0, 1.0), (1, -1.0))
        )
        return bool(np.array_equal(one, other))
    sizes = np.abs(rows)
    least = np.min(sizes, where=sizes > 0, initial=np.inf)
    if least == np.inf:
        return True
    # In units of a power of two, entries are whole numbers, and so are all sums.
    unit = 2.0 ** np.floor(np.log2(least))
    for _ in range(12):
        units = rows / unit
        if float(np.abs(units).max(initial=0.0)) * float(np.abs(factors).sum()) > WHOLE:
            return False
        if np.all(units == np.rint(units)):
            return bool(np.all(units @ factors == 0))
        unit *= 2.0**-4
    return False
