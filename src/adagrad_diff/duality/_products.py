r"""Sums, products with the data matrix in extended precision, and their rounding errors.

Entries are split into a leading part of few bits and a remainder. Sums of products of leading parts have
at most 53 bits, so BLAS computes them without rounding, in any order. What is added for the remainders
is smaller by the factor :math:`2^{-b}`, b being the number of leading bits, and so is its rounding error
(the splitting of Ozaki, Ogita, Oishi and Rump).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import fsum, nan
from typing import Any, NamedTuple

import numpy as np

from ..linalg import Block, Source
from ..linalg.source import joined
from ..penalties.arrays import EPS
from ..penalties.arrays import sum_rounding as factor

__all__ = [
    "EPS",
    "ExtendedMatrix",
    "exact_sum",
    "factor",
    "largest",
    "penalty_value",
    "two_product",
    "two_sum",
]

MANTISSA = 53  # bits of a double
EXPONENTS = (-1000, 1023)  # of the scales of columns: powers of two that are doubles
UNDERFLOW = 2.0**-1060  # absolute error of a product, with a margin
MAX_KEPT_ENTRIES = 1 << 20  # entries of A up to which its split is kept between products

Sums = tuple[np.ndarray, np.ndarray, np.ndarray]  # high part, low part, bound of the error


def exact_sum(values: Iterable[float]) -> float:
    """Return the rounded sum; NaN if it is not finite."""
    try:
        return fsum(values)
    except (OverflowError, ValueError):
        return nan


def largest(values: Any) -> float:
    """Return the largest absolute value."""
    return max(float(np.max(values)), -float(np.min(values)))


def penalty_value(dual: Any, x: np.ndarray) -> float:
    """Return phi(x). For data in single precision, x cannot be closer to a set than that."""
    phi = float(dual.penalty.value(x))
    return float(dual.penalty.value(x.astype(np.float32))) if phi == np.inf and dual.single else phi


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return s and e with a + b = s + e, where s is the rounded sum (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return p and e with a b = p + e, where p is the rounded product (Dekker, Veltkamp)."""
    p, c, d = a * b, 134217729.0 * a, 134217729.0 * b  # 2^27 + 1
    ah, bh = c - (c - a), d - (d - b)
    al, bl = a - ah, b - bh
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


class Split(NamedTuple):
    """Rows lo..hi of A as (lead + rest) * 2^exponents, with |lead| <= 1 of few bits."""

    lo: int
    hi: int
    lead: Any
    rest: Any
    exponents: np.ndarray
    bits: int


def _splits(block: Block) -> Iterator[Split]:
    """Yield the split of a few rows of a block after another."""
    for lo, hi in block.ranges(0, block.shape[0]):
        rows = block.cut(lo, hi)
        A: Any = rows.to_sparse() if hasattr(rows, "parts") else rows.to_dense()
        A = A.astype(np.float64)
        if hasattr(rows, "parts"):
            terms = max(A.shape) if A.has_canonical_format else A.nnz
            exponents, scale = _column_scales(abs(A).max(axis=0).toarray().ravel())
            bits = (MANTISSA - int(terms).bit_length()) // 2
            entries = A.data * scale[A.indices]
            lead = _leading(entries, bits)
            parts = [
                type(A)((part, A.indices, A.indptr), shape=A.shape)
                for part in (lead, entries - lead)
            ]
        else:
            exponents, scale = _column_scales(np.abs(A).max(axis=0))
            bits = (MANTISSA - max(A.shape).bit_length()) // 2
            lead = _leading(A := A * scale, bits)
            parts = [lead, A - lead]
        yield Split(lo, hi, parts[0], parts[1], exponents, bits)


def _column_scales(largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return exponents of columns, and powers of two that make their entries at most one."""
    exponents = np.clip(np.frexp(largest)[1], *EXPONENTS)
    return exponents, 2.0 ** -exponents.astype(np.float64)


def _leading(values: np.ndarray, bits: int) -> np.ndarray:
    """Round values of size at most one to multiples of 2^-bits."""
    shift = 1.5 * 2.0 ** (MANTISSA - 1 - bits)
    return np.asarray((values + shift) - shift)


def _scaled(values: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values / 2^e, their leading parts, and e, one for each column."""
    e = np.frexp(np.abs(values).max(axis=0, initial=0.0))[1]
    values = np.ldexp(values, -e)
    return values, _leading(values, bits), e


def _dot(split: Split, x: np.ndarray) -> Sums:
    """Return A x for columns x."""
    x, lead, e = _scaled(np.ldexp(x, split.exponents[:, None]), split.bits)
    low = split.lead @ (x - lead) + split.rest @ x
    error = factor(len(x)) * len(x) * np.ldexp(2.0 ** (1 - split.bits), e) + len(x) * UNDERFLOW
    high, low = np.ldexp(split.lead @ lead, e), np.ldexp(low, e)
    return high, low, np.broadcast_to(error * x.any(axis=0), high.shape)


def _tdot(split: Split, r: np.ndarray, rest: np.ndarray, samples: int) -> Sums:
    """Return A'(r + rest) for columns r; |rest| is at most the rounding of r."""
    scaled, lead, e = _scaled(r, split.bits)
    low = split.lead.T @ (scaled - lead + np.ldexp(rest, -e)) + split.rest.T @ scaled
    e = e + split.exponents[:, None]
    error = factor(samples) * len(r) * np.ldexp(2.0 ** (1 - split.bits), e) + len(r) * UNDERFLOW
    return np.ldexp(split.lead.T @ lead, e), np.ldexp(low, e), error * r.any(axis=0)


def _add(one: Sums, other: Sums) -> Sums:
    high, lost = two_sum(one[0], other[0])
    return high, one[1] + other[1] + lost, one[2] + other[2]


class ExtendedMatrix:
    """A, for products in extended precision."""

    def __init__(self, A: Source):
        self.A = A
        self.kept = [(block, list(_splits(block))) for block in A.blocks()] if _is_small(A) else []

    def dot(self, x: np.ndarray) -> Sums:
        """Return A x for columns x."""
        if self.kept:
            parts = [_dot(split, x) for _, splits in self.kept for split in splits]
        else:
            parts = self.A.fold(_dots, x, merge=joined)
        high, low, error = (np.concatenate(sums) for sums in zip(*parts, strict=True))
        return high, low, error

    def tdot(self, r: np.ndarray, rest: np.ndarray) -> Sums:
        """Return A'(r + rest) for columns r, where |rest| is at most the rounding of r."""
        samples = self.A.shape[0]
        if not self.kept:
            total: Sums = self.A.fold(_tdots, samples, along=(r, rest), merge=_add)
            return total
        return _sum(
            _tdot(
                split,
                block.part(r)[split.lo : split.hi],
                block.part(rest)[split.lo : split.hi],
                samples,
            )
            for block, splits in self.kept
            for split in splits
        )


def _is_small(A: Source) -> bool:
    return A.size <= MAX_KEPT_ENTRIES and not A.far


def _dots(block: Block, x: np.ndarray) -> list[Sums]:
    return [_dot(split, x) for split in _splits(block)]


def _tdots(block: Block, r: np.ndarray, rest: np.ndarray, samples: int) -> Sums:
    return _sum(_tdot(s, r[s.lo : s.hi], rest[s.lo : s.hi], samples) for s in _splits(block))


def _sum(parts: Iterator[Sums]) -> Sums:
    total = next(parts)
    for part in parts:
        total = _add(total, part)
    return total
