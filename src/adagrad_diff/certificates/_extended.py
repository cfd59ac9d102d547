"""Both sides of the duality gap of a linear model in twice the working precision, with bounds on what is still lost."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from ..data import Block, Source
from ..data.block import writeable
from ..data.compressed import ColumnsBlock, RowsBlock
from ..data.source import joined
from ..kernels import two_product, two_sum
from ..losses import LAD, Hinge, Huber, Logistic, Poisson, Quantile, Squared, SquaredHinge
from ..penalties import ElasticNet
from ._rounding import EPS, factor

# As the kernels number them.
KINDS: dict[type[Any], int] = {
    loss: k
    for k, loss in enumerate(
        (LAD, Quantile, Hinge, Squared, Huber, SquaredHinge, Logistic, Poisson)
    )
}
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
        self.dual, self.loss, self.kind = dual, dual.loss, KINDS[type(dual.loss)]
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
        found = kernels.exact_losses(self.kind, high, low, error, self.b, self.weight, loss.theta)
        parts = [found, penalty_value(self.dual, part)]
        if loss.l2:
            s, c, m = dot(part, part)
            parts.append((0.5 * loss.l2 * s, 0.5 * loss.l2 * c, EPS * loss.l2 * m))
        return added(parts)

    # ------------------------------------------------------------ D(u)

    def conjugates(self, u: np.ndarray, low: np.ndarray) -> Known:
        """sum_j w_j l*(u_j + low_j)."""
        return added(
            [kernels.exact_conjugates(self.kind, u, low, self.b, self.weight, self.loss.theta)]
        )

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


def phi_of(dual: Any, x: np.ndarray) -> float:
    """phi(x). Whether data in single precision are inside a set is judged in single precision: they cannot be closer to it."""
    phi = float(dual.penalty.value(x))
    return float(dual.penalty.value(x.astype(np.float32))) if phi == np.inf and dual.single else phi


def penalty_value(dual: Any, x: np.ndarray) -> tuple[float, float, float]:
    """phi(x) as a pair, and how far it may be off."""
    penalty = dual.penalty
    if not isinstance(penalty, ElasticNet):
        phi = phi_of(dual, x)
        return phi, 0.0, factor(x.size) * abs(phi) if phi < np.inf else 0.0
    l1, l2 = (np.broadcast_to(lam, x.shape).copy() for lam in (penalty.l1, penalty.l2))
    s, c, m = dot(l1, np.abs(x))
    t, d, n = dot(l2, x * x) if l2.any() else (0.0, 0.0, 0.0)
    return s + 0.5 * t, c + 0.5 * d, EPS * (m + n)


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
    if isinstance(block, RowsBlock | ColumnsBlock):
        by_rows = isinstance(block, RowsBlock) != transposed
        kernel = kernels.exact_rows_dot if by_rows else kernels.exact_rows_tdot
        kernel(*map(writeable, block.parts), x, low, out)
        return
    A = writeable(block.to_dense())
    if not A.flags.c_contiguous and A.strides[0] < A.strides[1]:
        A, transposed = A.T, not transposed
    kernel = kernels.exact_dense_tdot if transposed else kernels.exact_dense_dot
    kernel(A, x, low, out)
