"""Both sides of the duality gap of a linear model in twice the working precision, with bounds on what is still lost."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..linalg import Block, Source, kernels
from ..linalg.block import writeable
from ..linalg.compressed import ColumnsBlock, RowsBlock
from ..linalg.kernels import pair_sum, two_product, two_sum
from ..linalg.source import joined
from ..losses import LAD, Hinge, Huber, Logistic, Poisson, Quantile, Squared, SquaredHinge
from ._rounding import EPS, factor

KINDS = (LAD, Quantile, Hinge, Squared, Huber, SquaredHinge, Logistic, Poisson)
ROUNDING, ROUNDING_SQUARED = (
    2.0**-52,
    2.0**-100,
)  # of an operation, and of one on pairs, with a margin
BLOCK_SAMPLES = 4096  # whose losses are computed together, in the cache
PAIR_ROUNDING, UNDERFLOW = (
    2.0**-104,
    2.0**-1060,
)  # relative, times the square of the number of terms; absolute, times the number


class Known(NamedTuple):
    """A number up to an error."""

    value: float
    error: float


class Extended:
    """A linear model whose sums are pairs of doubles. Data in single precision are taken as the numbers that they are."""

    def __init__(self, dual: Any):
        self.dual, self.loss, self.kind = dual, dual.loss, type(dual.loss)
        self.b, self.weight = self.loss.b.astype(np.float64), self.loss.weight.astype(np.float64)
        self.samples, self.features = self.loss.A.shape
        low, high = self.loss.slopes(self.loss.b.astype(np.float64), self.loss.theta)
        self.low, self.high = (
            np.broadcast_to(np.asarray(end, np.float64), self.b.shape) for end in (low, high)
        )

    # ------------------------------------------------------------ F(x)

    def objective(self, x: np.ndarray) -> Known:
        """F(x)."""
        loss = self.loss
        part = np.ascontiguousarray(x[: self.features], dtype=np.float64)
        z = np.zeros((3, self.samples))
        if loss.intercept:
            z[0], z[2] = x[-1], abs(x[-1])
        z = dots(loss.A, part, z)
        error = (self.features + 8) ** 2 * PAIR_ROUNDING * z[2] + self.features * UNDERFLOW * bool(
            part.any()
        )
        high, low = two_sum_arrays(z[0], z[1])
        found = self._sum(pair_losses, high, low, error)
        parts = [found, penalty_value(self.dual, part)]
        if loss.l2:
            s, c, m = dot(part, part)
            parts.append((0.5 * loss.l2 * s, 0.5 * loss.l2 * c, EPS * loss.l2 * m))
        return added(parts)

    # ------------------------------------------------------------ D(u)

    def conjugates(self, u: np.ndarray, low: np.ndarray) -> Known:
        """sum_j w_j l*(u_j + low_j)."""
        return added([self._sum(pair_conjugates, u, low)])

    @np.errstate(all="ignore")
    def _sum(self, function: Any, *arrays: np.ndarray) -> tuple[float, float, float]:
        """Return sum_j w_j function(...)_j as a pair, and how far it may be off."""
        s: Any
        s = c = off = size = 0.0
        used = self.weight != 0
        for lo in range(0, self.samples, BLOCK_SAMPLES):
            part = np.flatnonzero(used[lo : lo + BLOCK_SAMPLES]) + lo
            weight, own = self.weight[part], (a[part] for a in arrays)
            value, low, error = function(self.kind, *own, self.b[part], self.loss.theta)
            p, e = two_product_arrays(weight, value)
            total, lost = pair_sum(p)
            s, f = two_sum_arrays(s, total)
            c += f + lost + (e + weight * low).sum()
            off += (weight * error).sum()
            size += np.abs(p).sum()
        rounding = (self.samples + 8.0) ** 2 * ROUNDING_SQUARED * size
        return float(s), float(c), float(2.0 * off + rounding)

    def products(self, u: np.ndarray, low: np.ndarray) -> np.ndarray:
        """A'(w (u + low)) in rows hi, lo and the sum of the sizes, with sum_j w_j u_j in the end for an intercept."""
        v = np.zeros((3, self.features + self.loss.intercept))
        r, rest = weighted(self.weight, u, low)
        v[:, : self.features] = tdots(self.loss.A, r, rest)
        return self._with_intercept(v, r, rest)

    def add_products(
        self, v: np.ndarray, rows: Block, samples: np.ndarray, change: np.ndarray
    ) -> None:
        """The same of a change at a few samples, whose rows of A these are."""
        r, rest = weighted(self.weight[samples], change, np.zeros(change.size))
        v[:, : self.features] = add_pairs(v[:, : self.features], tdot(rows, r, rest))
        self._with_intercept(v, r, rest)

    def _with_intercept(self, v: np.ndarray, r: np.ndarray, rest: np.ndarray) -> np.ndarray:
        if self.loss.intercept:
            last = v[:, -1:].copy()
            kernels.exact_dense_dot(r[None], np.ones(r.size), np.zeros(r.size), last)
            last[1] += rest.sum()
            v[:, -1:] = last
        v[0], v[1] = two_sum_arrays(v[0], v[1])
        return v

    def unknown(self, v: np.ndarray) -> np.ndarray:
        """How far these products may be off."""
        return np.asarray(
            (self.samples + 16) ** 2 * PAIR_ROUNDING * v[2] + self.samples * UNDERFLOW
        )


Triple = tuple[np.ndarray, np.ndarray, np.ndarray]  # numbers as pairs, and how far they may be off


def pair_losses(
    kind: Any, z: np.ndarray, low: np.ndarray, e: np.ndarray, b: np.ndarray, theta: float
) -> Triple:
    """Return l(z + low, b) if z + low is off by e at most."""
    if kind in (Hinge, SquaredHinge):
        t, f = two_sum_arrays(np.ones_like(z), -b * z)
        t, f = two_sum_arrays(t, f - b * low)  # where 1 - b z cancels, low is no longer small
        e = e + ROUNDING_SQUARED * (1.0 + np.abs(z))
        inactive = t + f <= 0.0
        t, f = np.where(inactive, 0.0, t), np.where(inactive, 0.0, f)
        if kind is Hinge:
            return t, f, e
        return *square(t, f), 2.0 * t * e + e * e
    if kind is Logistic:
        margin, more = b * z, b * low
        small = np.exp(-np.abs(margin))
        value, slope = np.log1p(small), small / (1.0 + small)
        error, negative = 8.0 * ROUNDING * value + e + low * low, margin < 0.0
        s, f = two_sum_arrays(np.where(negative, -margin, 0.0), value)
        rest = np.where(negative, f + more * (slope - 1.0), -slope * more)
        return s, rest, error + np.where(negative, ROUNDING * np.abs(more), 0.0)
    if kind is Poisson:
        rate = np.exp(z)
        p, q = two_product_arrays(b, z)
        s, f = two_sum_arrays(rate, -p)
        off = 8.0 * ROUNDING * rate + (2.0 * rate + b) * (e + low * low)
        return s, (f - q) + (rate - b) * low, off
    t, f = two_sum_arrays(z, -b)
    t, f = two_sum_arrays(t, f + low)  # where z - b cancels, low is no longer small
    e = e + ROUNDING_SQUARED * (np.abs(z) + np.abs(b))
    if kind is Squared:
        p, q = square(t, f)
        return 0.5 * p, 0.5 * q, np.abs(t) * e + e * e
    negative = t + f < 0.0
    if kind is Quantile:
        slope = np.where(negative, -theta, 1.0 - theta)
        p, q = two_product_arrays(slope, t)
        return p, q + slope * f, e
    t, f = np.where(negative, -t, t), np.where(negative, -f, f)
    if kind is LAD:
        return t, f, e
    near = t <= theta  # Huber
    p, q = square(t, f)
    far, g = two_sum_arrays(t, np.full_like(t, -0.5 * theta))
    s, h = two_product_arrays(np.full_like(t, theta), far)
    off = np.where(near, t * e + e * e, theta * e + e * e)
    return np.where(near, 0.5 * p, s), np.where(near, 0.5 * q, h + theta * (f + g)), off


def pair_conjugates(
    kind: Any, u: np.ndarray, low: np.ndarray, b: np.ndarray, theta: float
) -> Triple:
    """Return l*(u + low, b) for u + low in the domain."""
    if kind in (Logistic, Poisson):
        if kind is Logistic:
            p, f = -b * u, -b * low
            p, f = np.where(p > 0.5, 1.0 - p, p), np.where(p > 0.5, -f, f)
        else:
            p, f = two_sum_arrays(b, u)
            f = f + low
        outside = (p <= 0.0) | (np.abs(f) > 0.5 * p)
        edge = np.where((p == 0.0) & (f == 0.0), 0.0, np.inf)
        p, f = np.where(outside, 0.25, p), np.where(outside, 0.0, f)
        logarithm = np.log(p)
        if kind is Poisson:
            s, g = two_sum_arrays(p * logarithm, -p)
            more, second = logarithm * f, f * f / p
            off = 4.0 * ROUNDING * (p * np.abs(logarithm) + np.abs(more)) + second
        else:
            rest = np.log1p(-p)
            s, g = two_sum_arrays(p * logarithm, (1.0 - p) * rest)
            more = (logarithm - rest) * f
            off = 8.0 * ROUNDING * np.abs(s) + 2.0 * f * f / p
        inside = ~outside
        return (
            np.where(inside, s, edge),
            np.where(inside, g + more, 0.0),
            np.where(inside, off, 0.0),
        )
    p, q = two_product_arrays(b, u)
    q = q + b * low
    if kind in (LAD, Quantile, Hinge):
        return p, q, np.zeros_like(p)
    s, f = square(u, low)
    part = 0.25 if kind is SquaredHinge else 0.5
    size = np.abs(p) + s
    p, g = two_sum_arrays(p, part * s)
    return p, (q + g) + part * f, ROUNDING_SQUARED * size


def square(t: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (t + low)^2 as a pair."""
    p, e = two_product_arrays(t, t)
    return p, e + low * (2.0 * t + low)


def phi_of(dual: Any, x: np.ndarray) -> float:
    """phi(x). Whether data in single precision are inside a set is judged in single precision: they cannot be closer to it."""
    phi = float(dual.penalty.value(x))
    return float(dual.penalty.value(x.astype(np.float32))) if phi == np.inf and dual.single else phi


def penalty_value(dual: Any, x: np.ndarray) -> tuple[float, float, float]:
    """phi(x) as a pair, and how far it may be off."""
    terms = dual.penalty.quadratic_terms(x.size)
    if terms is None or terms.bounded or terms.strength is not None:
        phi = phi_of(dual, x)
        return phi, 0.0, factor(x.size) * abs(phi) if phi < np.inf else 0.0
    s, c, m = dot(terms.l1, np.abs(x))
    t, d, n = dot(terms.l2, x * x) if terms.l2.any() else (0.0, 0.0, 0.0)
    return s + 0.5 * t, c + 0.5 * d, EPS * (m + n) + terms.rounding * (s + t)


def weighted(weight: np.ndarray, u: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """w (u + low) as a pair."""
    r, rest = two_product_arrays(weight, u)
    return r, rest + weight * low


def two_sum_arrays(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same statements for arrays: NumPy neither reorders nor contracts."""
    s, e = two_sum.py_func(a, b)
    return s, e


def two_product_arrays(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p, e = two_product.py_func(a, b)
    return p, e


def dot(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    """a'b as a pair, and the sum of the sizes."""
    out = np.zeros((3, 1))
    kernels.exact_dense_dot(
        np.ascontiguousarray(a, np.float64)[None], np.asarray(b, np.float64), np.zeros(a.size), out
    )
    return float(out[0, 0]), float(out[1, 0]), float(out[2, 0])


def added(parts: list[tuple[float, float, float]]) -> Known:
    """The sum of pairs with errors, rounded to one double."""
    from math import fsum

    value = fsum(number for high, low, _ in parts for number in (high, low))
    error = sum(error for *_, error in parts)
    return Known(value, (error + EPS * abs(value)) * (1.0 + 1e-9))


def dots(A: Source, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """z + A x in rows hi, lo and the sum of the sizes."""
    return np.concatenate(A.fold(_dot, x, along=(z.T,), merge=joined), axis=1)


def tdots(A: Source, r: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """A'(r + rest) in such rows."""
    v: np.ndarray = A.fold(tdot, along=(r, rest), merge=add_pairs)
    return v


def add_pairs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The sum of numbers in such rows."""
    high, lost = two_sum_arrays(one[0], other[0])
    return np.stack([high, one[1] + other[1] + lost, one[2] + other[2]])


# ------------------------------------------------------------ of one block


def _dot(block: Block, z: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    part = z.T.copy()
    _multiply(block, x, np.zeros(x.size), part, False)
    return [part]


def tdot(block: Block, r: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """A'(r + rest) of one block, or of some rows."""
    out = np.zeros((3, block.shape[1]))
    _multiply(block, r, rest, out, True)
    return out


def _multiply(
    block: Block, x: np.ndarray, low: np.ndarray, out: np.ndarray, transposed: bool
) -> None:
    """out += A x, or A'x: the compressed columns of A are the compressed rows of A'."""
    small = kernels.is_small(block.shape[0] * block.shape[1])
    if isinstance(block, RowsBlock | ColumnsBlock) and not small:
        by_rows = isinstance(block, RowsBlock) != transposed
        kernel = kernels.exact_rows_dot if by_rows else kernels.exact_rows_tdot
        kernel(*map(writeable, block.parts), x, low, out)
        return
    A = writeable(block.to_dense())
    if not A.flags.c_contiguous and A.strides[0] < A.strides[1]:
        A, transposed = A.T, not transposed
    kernel = kernels.exact_dense_tdot if transposed else kernels.exact_dense_dot
    kernel(A, x, low, out)
