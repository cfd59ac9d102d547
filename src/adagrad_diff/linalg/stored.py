"""Sources in memory: an array, a SciPy matrix or an operator, in ranges of rows for threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _threads as shared
from .as_block import OperatorBlock, as_block
from .block import Block, Pass, Samples
from .compressed import ColumnsBlock, RowsBlock
from .dense import DenseBlock
from .source import Source


class Stored(Source):
    """A source with one block. Folds are over parts of it that fit into the cache."""

    def __init__(self, block: Block):
        self.whole, self.shape, self.dtype = block, block.shape, block.dtype
        self.opaque = block.opaque

    @property
    def size(self) -> int:
        return self.whole.size

    def check(self, name: str) -> None:
        """Do nothing: `as_block` has checked it."""

    def blocks(self) -> Iterator[Block]:
        return (self.whole.cut(lo, hi) for lo, hi in self.whole.ranges(0, self.shape[0]))

    def linear_pass(self, samples: Samples) -> SumOverRows:
        work = self.size * samples.width if self.whole.own_kernels(samples) else 0
        samples = samples.with_memory()
        return SumOverRows(self, samples, self.whole.linear_pass(samples), work)

    def dot(self, x: np.ndarray, z: np.ndarray) -> None:
        self.whole.dot(x, z)

    def tdot(self, r: np.ndarray, g: np.ndarray) -> None:
        self.whole.tdot(r, g)

    def rows(self, index: np.ndarray) -> Block:
        return self.whole.rows(index)

    def entries(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.whole.entries(index, columns)

    def to_dense(self) -> np.ndarray:
        return self.whole.to_dense()

    def skew(self) -> float:
        return self.whole.skew()


class SumOverRows(Pass):
    """The sums of rows(x, offset, lo, hi, g, value, add) over all rows.

    Each thread has a range of rows, and all but the first have their own memory. The results are
    added in the order of the rows.
    """

    def __init__(self, source: Source, samples: Samples, rows: Callable[..., None], work: int):
        super().__init__(source, samples)
        self.rows, self.work = rows, work
        self._g = self._value = np.empty((0,))  # one row per thread

    def __call__(
        self, x: np.ndarray, offset: Any, g: np.ndarray, value: np.ndarray, add: bool
    ) -> np.ndarray:
        r = self.samples.r
        threads = min(shared.thread_count(self.work), len(r))
        if threads == 1:
            self.rows(x, offset, 0, len(r), g, value, add)
            return r
        if threads != len(self._value):
            self._value = np.empty((threads, *value.shape))
            self._g = np.empty((threads - 1, *g.shape), g.dtype)
        values, gradients = self._value, self._g
        values.fill(0)
        values[0] = value

        def worker(part: int, lo: int, hi: int) -> None:
            if part:
                self.rows(x, offset, lo, hi, gradients[part - 1], values[part], False)
            else:
                self.rows(x, offset, lo, hi, g, values[0], add)

        shared.over_rows(worker, len(r), threads)
        for other in gradients:
            g += other
        value[...] = values.sum(axis=0)
        return r


class Dense(Stored):
    """A NumPy array, which may be read-only or memory-mapped."""

    kind = "dense"

    @property
    def array(self) -> np.ndarray:
        """The array."""
        return self.whole.array  # type: ignore[attr-defined,no-any-return]


class Compressed(Stored):
    """A SciPy matrix in CSR or CSC."""

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arrays indptr, indices and data."""
        return self.whole.parts  # type: ignore[attr-defined,no-any-return]


class CompressedRows(Compressed):
    """CSR."""

    kind = "CSR"


class CompressedColumns(Compressed):
    """CSC."""

    kind = "CSC"


class Operator(Stored):
    """A LinearOperator of SciPy."""

    kind = "operator"


KIND_OF_BLOCK: dict[type[Block], type[Stored]] = {
    DenseBlock: Dense,
    RowsBlock: CompressedRows,
    ColumnsBlock: CompressedColumns,
    OperatorBlock: Operator,
}


def as_source(A: Any, name: str = "A") -> Source:
    """Return a `Source` over the memory of the user, checked for shape, dtype and non-finite entries."""
    if isinstance(A, Source):
        A.check(name)
        return A
    if isinstance(A, type) and issubclass(A, Source):
        raise TypeError(f"{name} is the class {A.__name__}. Did you mean {A.__name__}()?")
    if type(A).__module__.partition(".")[0] == "dask":
        raise TypeError(
            f"{name} is a Dask {type(A).__name__}: use adagrad_diff.dask.source({name}), or the loss "
            "of the same name there."
        )
    block = as_block(A, name)
    return KIND_OF_BLOCK[type(block)](block)
