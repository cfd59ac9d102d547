"""Columns that are simple combinations of others: duplicates, and one-hot columns, which add up to that of the intercept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg import Block
from ._extended import two_product_arrays

DENOMINATORS = 12  # coefficients are multiples of one over these
MOST_TERMS = 400  # columns in a combination
CLOSE = 1e-6  # how near a coefficient is to such a multiple
WHOLE = 2.0**52  # up to which sums of whole numbers are exact


def follow(problem: Any, here: Any, basis: np.ndarray, others: np.ndarray) -> bool:
    """Whether each of the other columns is exactly a combination of those of the basis, over all samples with a weight."""
    if not others.size:
        return True
    B, N = here.columns(basis), here.columns(others)
    coefficients = np.linalg.lstsq(B, N, rcond=None)[0]
    for k, other in enumerate(others):
        single = _single(coefficients[:, k] * np.abs(B).max(axis=0))
        whole = _rational(coefficients[:, k])
        if single is not None:  # a multiple, by whatever number: that of the entries of one sample
            columns = np.array([basis[single], other])
            factors = _entries(problem, columns)[::-1] * np.array([1.0, -1.0])
        elif whole is not None and np.count_nonzero(whole[1]) <= MOST_TERMS:
            used = np.flatnonzero(whole[1])
            columns, factors = np.append(basis[used], other), np.append(whole[1][used], -whole[0])
        else:
            return False
        if not problem.loss.A.fold(
            _vanishes, columns, factors, problem.features, along=(problem.weight,), merge=_both
        ):
            return False
    return True


def _single(sizes: np.ndarray) -> int | None:
    """The only place that is not next to nothing; None if there are several."""
    places = np.flatnonzero(np.abs(sizes) > CLOSE * np.abs(sizes).max(initial=0.0))
    return int(places[0]) if places.size == 1 else None


def _entries(problem: Any, columns: np.ndarray) -> np.ndarray:
    """Of some columns, in the first sample with a weight in which they are not all zero; the last one is of ones."""
    used, entries = np.flatnonzero(problem.weight > 0), np.zeros(columns.size)
    for sample in used:
        row = np.append(problem.loss.A.rows(np.array([sample])).to_dense()[0], 1.0)
        entries = row[np.minimum(columns, problem.features)]
        if entries.any():
            break
    return entries


def _rational(c: np.ndarray) -> tuple[int, np.ndarray] | None:
    """c = p / q for a small q, if that is so but for rounding."""
    for q in range(1, DENOMINATORS + 1):
        p = np.rint(q * c)
        if np.all(np.abs(q * c - p) <= CLOSE):
            return q, p
    return None


def _both(one: bool, other: bool) -> bool:
    return one and other


def _vanishes(
    block: Block, weight: np.ndarray, columns: np.ndarray, factors: np.ndarray, features: int
) -> bool:
    """Whether the combination is zero in this block, by sums that have no rounding."""
    real = columns[columns < features]
    array = getattr(block, "array", None)
    dense = array[:, real] if array is not None else block.to_sparse()[:, real].toarray()
    rows = np.ones((block.shape[0], columns.size))
    rows[:, columns < features] = dense
    rows = rows[weight > 0]
    if columns.size == 2:  # a multiple: products as pairs are equal if they are
        one, other = (
            two_product_arrays(rows[:, k], np.full(len(rows), sign * factors[k]))
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
