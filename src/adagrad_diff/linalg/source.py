"""Where A lives: a source of row blocks, which losses and certificates fold their sums over.

A source of your own computes or reads its blocks when they are asked for:

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

    A subclass has `shape`, `dtype` (float64 by default, or float32), `cuts`, the row numbers 0 < ... < samples between which
    the blocks lie, and `block(k)`, the rows from cuts[k] on as an array or a SciPy matrix. A block is used before the next one
    is asked for, so all may come in the same memory. Everything else is made of `fold`.
    """

    shape: tuple[int, int]
    dtype: Any = np.dtype(np.float64)
    cuts: Sequence[int]
    kind = "blocks"  # what it is called in a few words
    opaque = False  # whether entries are not seen, only products
    overhead = 0.0  # seconds of a fold beside its multiplications, about
    far = False  # whether blocks live elsewhere: residuals are made again, and brought here, only when somebody asks for them

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
        """Block by block, from the first row to the last."""
        return (self._block(k) for k in range(len(self.cuts) - 1))

    def _block(self, k: int, finite: bool = False) -> Block:
        lo, hi = self.cuts[k], self.cuts[k + 1]
        name = f"Block {k} of {type(self).__name__} (rows {lo} to {hi - 1})"
        return own_block(self.block(k), name, (hi - lo, self.shape[1]), self.dtype, lo, finite)

    def check(self, name: str) -> None:
        """Look at everything once: an error that names the block which is wrong."""
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
        """function(block, *along, *args) of every block, merged in the order of the rows: by default added up.

        `along` are vectors with one entry (or row) per sample: the function gets those of its block. It may be called in
        another process. So it is one of a module, and returns numbers, arrays of its own, tuples or lists of them.

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

    # ------------------------------------------------------------ what a linear model asks for

    def linear_pass(self, samples: Samples) -> Pass:
        """What goes through A once for each x."""
        return Pass(self, samples.with_memory())

    def dot(self, x: np.ndarray, z: np.ndarray) -> None:
        """z = A x"""
        for block in self.blocks():
            block.dot(x, block.part(z))

    def tdot(self, r: np.ndarray, g: np.ndarray) -> None:
        """g = A' r"""
        np.copyto(g, self.fold(_tdot, g.dtype, along=(r,)))

    def moments(self, weight: np.ndarray) -> Moments | None:
        """Of the columns; None if nobody sees the entries."""
        if self.opaque:
            return None
        return self.with_variances(Moments(*self.fold(_moments, along=(weight,))), weight)

    def with_variances(self, moments: Moments, weight: np.ndarray) -> Moments:
        """Return moments with exact variances of columns whose means are large."""
        variance = moments.square - moments.mean**2
        canceled = (variance <= CANCELED_PART * moments.square) & (moments.square > 0)
        columns = np.flatnonzero(canceled)
        if columns.size:
            call = columns, moments.mean[columns]
            variance[columns] = self.fold(_centered_squares, *call, along=(weight,))
        return moments._replace(variance=variance)

    # ------------------------------------------------------------ what a certificate asks for

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        """sum_j weight_j |a_ji| for every column i, by which the rounding of A' (weight u) is measured.

        An operator does not show its entries: theirs are guessed from one product.
        """
        sizes: np.ndarray = self.fold(_column_sizes, along=(weight,))
        return sizes

    def rows(self, index: np.ndarray) -> Block:
        """A copy of a few rows in double precision. The index is sorted: rows come as their blocks do."""
        found = [self._block(k).rows(part - lo) for k, lo, part in self.places(index)]
        return stacked(found)

    def entries(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Those of a few rows in a few columns, as an array in double precision. The index is sorted."""
        return np.concatenate(
            [self._block(k).entries(part - lo, columns) for k, lo, part in self.places(index)]
        )

    def places(self, index: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
        """The blocks that have some of the rows: (number, first row, which)."""
        ends = np.searchsorted(index, self.cuts)
        for k, (first, last) in enumerate(pairwise(ends.tolist())):
            if last > first or (k == 0 and index.size == 0):
                yield k, self.cuts[k], index[first:last]

    def to_dense(self) -> np.ndarray:
        """All of A as an array: for small ones."""
        return np.concatenate(self.fold(_dense, merge=joined))

    # ------------------------------------------------------------ what a quadratic function asks for

    def largest(self) -> float:
        """The largest absolute value of an entry."""
        return float(self.fold(_largest, merge=max))

    def diagonal(self) -> np.ndarray | None:
        """Of a square matrix; None if nobody sees the entries."""
        return None if self.opaque else np.concatenate(self.fold(_diagonal, merge=joined))

    def skew(self) -> float:
        """How far a square matrix is from symmetric: the largest |a_ij - a_ji|. Every block is compared with all others."""
        return max(
            float(self.fold(_difference, block.to_dense().copy(), block.first, merge=max))
            for block in self.blocks()
        )


class Moments(NamedTuple):
    """Weighted means of the columns, of their squares, and the part of their entries that is not zero."""

    mean: np.ndarray
    square: np.ndarray
    filled: np.ndarray
    variance: np.ndarray | None = None

    def scale(self, centered: bool) -> tuple[np.ndarray, np.ndarray]:
        """One over the size of each column, and which of them are zero, or if their means do not count, constant.

        How rare a feature is does not count: of a column, the size that its entries have where they are not zero.
        """
        variance, least = self.square, CONSTANT_PART**2
        if centered and self.variance is not None:
            variance = self.variance
        elif centered:
            variance, least = self.square - self.mean**2, CONSTANT_DIFFERENCE
        flat = variance <= least * self.square
        return np.where(flat, 1.0, np.sqrt(self.filled / np.where(flat, 1.0, variance))), flat


def joined(one: Any, other: Any) -> Any:
    """Lists, one after the other."""
    return one + other


def added(one: Any, other: Any) -> Any:
    """The sum of two answers; arrays are added up in place."""
    if isinstance(one, tuple):
        return tuple(map(added, one, other))
    one += other
    return one


# ------------------------------------------------------------ of one block


def _tdot(block: Block, r: np.ndarray, dtype: Any) -> np.ndarray:
    g = np.empty((block.shape[1], *r.shape[1:]), dtype)
    block.tdot(r, g)
    return g


def _moments(block: Block, weight: np.ndarray) -> np.ndarray:
    return block.moments(weight)


def _centered_squares(
    block: Block, weight: np.ndarray, columns: np.ndarray, mean: np.ndarray
) -> np.ndarray:
    rows = np.arange(block.shape[0])
    return np.asarray(weight @ (block.entries(rows, columns) - mean) ** 2)


def _column_sizes(block: Block, weight: np.ndarray) -> np.ndarray:
    return block.column_sizes(weight)


def _dense(block: Block) -> list[np.ndarray]:
    return [block.to_dense().copy()]  # the next block may come in the same memory


def _largest(block: Block) -> float:
    return block.largest()


def _diagonal(block: Block) -> list[np.ndarray]:
    return [block.diagonal().copy()]


def _difference(block: Block, rows: np.ndarray, first: int) -> float:
    """The largest |a_ij - a_ji| for i in a block and j among other rows, from `first` on."""
    columns = block.to_dense()[:, first : first + len(rows)]
    return float(np.abs(columns - block.part(rows.T)).max())


def stacked(blocks: list[Block]) -> Block:
    """Rows in double precision, one below the other."""
    from scipy import sparse

    if len(blocks) == 1:
        return blocks[0]
    if all(hasattr(block, "array") for block in blocks):
        rows: Any = np.concatenate([block.to_dense() for block in blocks])
    else:
        rows = sparse.vstack([block.to_sparse() for block in blocks], format="csr")
    return own_block(rows, "rows of A", rows.shape, np.float64, 0, finite=False)
