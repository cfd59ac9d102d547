"""The data matrix as a source of row blocks, over which losses and certificates take their sums.

A user-defined source computes or reads its blocks on demand:

>>> import numpy as np
>>> from adagrad_diff import L1, Squared, minimize
>>> from adagrad_diff.linalg import Source
>>> class Waves(Source):
...     shape, cuts = (1000, 4), range(0, 1001, 250)
...     def block(self, k):
...         t = np.arange(self.cuts[k], self.cuts[k + 1])
...         return np.cos(np.outer(t, [0.1, 0.2, 0.3, 0.4]))
>>> loss = Squared(Waves(), np.cos(0.2 * np.arange(1000)))
>>> abs(minimize(loss, penalty=L1(0.01)).x).round(2).tolist()
[0.0, 0.98, 0.0, 0.0]
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .as_block import own_block
from .block import Block, Pass, Samples

# A column is constant if its spread is at most this part of its size: rounding of mean and entries.
CONSTANT_PART = 1e-13
# Variances below this part of the mean square are computed from centered entries: the difference of
# mean square and squared mean would lose more than half of their digits.
CANCELED_PART = 1e-8
CONSTANT_DIFFERENCE = 1e-12  # part below which such a difference counts as zero


class Source(ABC):
    """A real matrix A in blocks of rows, one row per sample.

    A subclass has `shape`, `dtype` (float64 by default, or float32), `cuts`, the row numbers
    0 < ... < samples between which the blocks lie, and `block(k)`, the rows from cuts[k] on as an
    array or a SciPy matrix. A block is used before the next one is computed, so all may use the same
    memory. All sums are made by `fold`.
    """

    shape: tuple[int, int]
    dtype: Any = np.dtype(np.float64)
    cuts: Sequence[int]
    kind = "blocks"  # a short description
    opaque = False  # whether there are only products, and no entries
    overhead = 0.0  # seconds of a fold beside its multiplications, about
    far = False  # whether blocks are remote: residuals are then computed again when they are needed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} x {self.shape[1]}, {self.kind}, {np.dtype(self.dtype)})"

    def block(self, k: int) -> Any:
        """Rows cuts[k] to cuts[k + 1] of A, as an array or a SciPy matrix."""
        raise NotImplementedError(
            f"{type(self).__name__} has no method block(k) that returns its k-th block of rows."
        )

    @property
    def size(self) -> int:
        """Stored entries: multiplications in one product."""
        return self.shape[0] * self.shape[1]

    def blocks(self) -> Iterator[Block]:
        """Return all blocks, from the first row to the last."""
        return (self._block(k) for k in range(len(self.cuts) - 1))

    def _block(self, k: int, finite: bool = False) -> Block:
        lo, hi = self.cuts[k], self.cuts[k + 1]
        name = f"Block {k} of {type(self).__name__} (rows {lo} to {hi - 1})"
        return own_block(self.block(k), name, (hi - lo, self.shape[1]), self.dtype, lo, finite)

    def check(self, name: str) -> None:
        """Check all blocks once, or raise an error that names the invalid block."""
        owner = f"The source {type(self).__name__} given as {name}"
        shape, cuts = getattr(self, "shape", None), getattr(self, "cuts", None)
        if not (
            isinstance(shape, tuple)
            and len(shape) == 2
            and all(isinstance(n, int | np.integer) and n > 0 for n in shape)
        ):
            raise ValueError(
                f"{owner} must have a shape (samples, features) of two positive integers. Got {shape!r} instead."
            )
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(
                f"{owner} must have dtype float32 or float64. Got {np.dtype(self.dtype)} instead."
            )
        if (
            cuts is None
            or list(cuts[:1]) != [0]
            or cuts[-1] != shape[0]
            or any(lo >= hi for lo, hi in pairwise(cuts))
        ):
            raise ValueError(
                f"{owner} must have cuts, the increasing row numbers from 0 to {shape[0]} between which its blocks lie. "
                f"Got {cuts!r} instead."
            )
        for k in range(len(cuts) - 1):
            self._block(k, finite=True)

    def fold(
        self,
        function: Callable[..., Any],
        *args: Any,
        along: tuple[np.ndarray, ...] = (),
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """Return function(block, *along, *args) of every block, added up in the order of the rows.

        `along` are vectors with one entry (or row) per sample, of which the function gets the part of
        its block. It may be called in another process, so it must be defined in a module, and return
        numbers, new arrays, or tuples or lists of them.

        Examples
        --------
        >>> import numpy as np
        >>> from adagrad_diff.linalg import as_source
        >>> def column_sums(block, weight):
        ...     return weight @ block.to_dense()
        >>> as_source(np.ones((3, 2))).fold(column_sums, along=(np.array([1.0, 2.0, 3.0]),)).tolist()
        [6.0, 6.0]
        """
        answers = (function(block, *map(block.part, along), *args) for block in self.blocks())
        total = next(answers)
        for answer in answers:
            total = (merge or added)(total, answer)
        return total

    # ------------------------------------------------------------ for linear models

    def linear_pass(self, samples: Samples) -> Pass:
        """Return the pass of a linear model, which reads A once for each x."""
        return Pass(self, samples.with_memory())

    def dot(self, x: np.ndarray, z: np.ndarray) -> None:
        """z = A x"""
        for block in self.blocks():
            block.dot(x, block.part(z))

    def tdot(self, r: np.ndarray, g: np.ndarray) -> None:
        """g = A' r"""
        np.copyto(g, self.fold(_tdot, g.dtype, along=(r,)))

    def moments(self, weight: np.ndarray) -> Moments | None:
        """Return the moments of the columns, or None for a LinearOperator."""
        if self.opaque:
            return None
        return self.with_variances(Moments(*self.fold(_result, "moments", along=(weight,))), weight)

    def with_variances(self, moments: Moments, weight: np.ndarray) -> Moments:
        """Return moments with exact variances of columns whose means are large."""
        variance = moments.square - moments.mean**2
        canceled = (variance <= CANCELED_PART * moments.square) & (moments.square > 0)
        columns = np.flatnonzero(canceled)
        if columns.size:
            call = columns, moments.mean[columns]
            variance[columns] = self.fold(_centered_squares, *call, along=(weight,))
        return moments._replace(variance=variance)

    # ------------------------------------------------------------ for certificates

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        """Return sum_j weight_j |a_ji| for every column i, for bounds on the rounding of A' (weight u).

        An operator does not show its entries: theirs are guessed from one product.
        """
        sizes: np.ndarray = self.fold(_result, "column_sizes", along=(weight,))
        return sizes

    def rows(self, index: np.ndarray) -> Block:
        """Return a copy of a few rows in double precision. The index must be sorted."""
        found = [self._block(k).rows(part - lo) for k, lo, part in self.places(index)]
        return stacked(found)

    def entries(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return some rows and columns as an array in double precision. The index must be sorted."""
        return np.concatenate(
            [self._block(k).entries(part - lo, columns) for k, lo, part in self.places(index)]
        )

    def places(self, index: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
        """Return the blocks with some of the rows: (number, first row, part of the index)."""
        ends = np.searchsorted(index, self.cuts)
        for k, (first, last) in enumerate(pairwise(ends.tolist())):
            if last > first or (k == 0 and index.size == 0):
                yield k, self.cuts[k], index[first:last]

    def to_dense(self) -> np.ndarray:
        """Return A as an array."""
        return np.concatenate(self.fold(_copy, "to_dense", merge=joined))

    # ------------------------------------------------------------ for quadratic functions

    def largest(self) -> float:
        """Return the largest absolute value of an entry."""
        return float(self.fold(_result, "largest", merge=max))

    def diagonal(self) -> np.ndarray | None:
        """Return the diagonal of a square matrix, or None for a LinearOperator."""
        return None if self.opaque else np.concatenate(self.fold(_copy, "diagonal", merge=joined))

    def skew(self) -> float:
        """Return the largest |a_ij - a_ji| of a square matrix. Each block is compared with all blocks."""
        return max(
            float(self.fold(_difference, block.to_dense().copy(), block.first, merge=max))
            for block in self.blocks()
        )


class Moments(NamedTuple):
    """Weighted means of the columns and of their squares, and the share of nonzero entries."""

    mean: np.ndarray
    square: np.ndarray
    filled: np.ndarray
    variance: np.ndarray | None = None

    def scale(self, centered: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return 1 / the size of each column, and which columns are zero, or constant if `centered`.

        The size of a column is that of its nonzero entries, however rare they are.
        """
        variance, least = self.square, CONSTANT_PART**2
        if centered and self.variance is not None:
            variance = self.variance
        elif centered:
            variance, least = self.square - self.mean**2, CONSTANT_DIFFERENCE
        flat = variance <= least * self.square
        return np.where(flat, 1.0, np.sqrt(self.filled / np.where(flat, 1.0, variance))), flat


def joined(one: Any, other: Any) -> Any:
    """Return the concatenation of two lists."""
    return one + other


def added(one: Any, other: Any) -> Any:
    """Return the sum of two results. Arrays are added in place."""
    if isinstance(one, tuple):
        return tuple(map(added, one, other))
    one += other
    return one


# ------------------------------------------------------------ of one block


def _tdot(block: Block, r: np.ndarray, dtype: Any) -> np.ndarray:
    g = np.empty((block.shape[1], *r.shape[1:]), dtype)
    block.tdot(r, g)
    return g


def _result(block: Block, *arguments: Any) -> Any:
    """Return the result of a method of the block, whose name comes last."""
    *values, method = arguments
    return getattr(block, method)(*values)


def _copy(block: Block, method: str) -> list[np.ndarray]:
    return [getattr(block, method)().copy()]  # the next block may use the same memory


def _centered_squares(
    block: Block, weight: np.ndarray, columns: np.ndarray, mean: np.ndarray
) -> np.ndarray:
    rows = np.arange(block.shape[0])
    return np.asarray(weight @ (block.entries(rows, columns) - mean) ** 2)


def _difference(block: Block, rows: np.ndarray, first: int) -> float:
    """Return the largest |a_ij - a_ji| for i in a block and j among other rows, from `first` on."""
    columns = block.to_dense()[:, first : first + len(rows)]
    return float(np.abs(columns - block.part(rows.T)).max())


def stacked(blocks: list[Block]) -> Block:
    """Return blocks in double precision as one block."""
    from scipy import sparse

    if len(blocks) == 1:
        return blocks[0]
    if all(hasattr(block, "array") for block in blocks):
        rows: Any = np.concatenate([block.to_dense() for block in blocks])
    else:
        rows = sparse.vstack([block.to_sparse() for block in blocks], format="csr")
    return own_block(rows, "rows of A", rows.shape, np.float64, 0, finite=False)
