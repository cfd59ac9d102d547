"""Sources in memory: one array, one SciPy matrix or one operator, in ranges of rows that threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _threads as shared
from .block import Block
from .compressed import ColumnsBlock, RowsBlock
from .dense import DenseBlock
from .operator import OperatorBlock
from .passes import Pass
from .samples import Samples
from .source import Source


class Stored(Source):
    """All rows are one block, which has its own ways; folds go through parts of it that fit into the cache."""

    def __init__(self, block: Block):
        self.whole, self.shape, self.dtype, self.opaque = (
            block,
            block.shape,
            block.dtype,
            block.opaque,
        )

    @property
    def size(self) -> int:
        return self.whole.size

    def check(self, name: str) -> None:
        """It was checked when it was made."""

    def blocks(self) -> Iterator[Block]:
        return (self.whole.cut(lo, hi) for lo, hi in self.whole.ranges(0, self.shape[0]))

    def linear_pass(self, samples: Samples) -> SumOverRows:
        """Threads of ours are for kernels of ours."""
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

    Each thread has a range of rows, and memory of its own from the second one on; they are added up in the order of the rows.
    """

    def __init__(self, source: Source, samples: Samples, rows: Callable[..., None], work: int):
        super().__init__(source, samples)
        self.rows, self.work = rows, work
        self._g = self._value = np.empty((0,))  # one row per thread

    def __call__(
        self, x: np.ndarray, offset: Any, g: np.ndarray, value: np.ndarray, add: bool
    ) -> np.ndarray:
        r = self.samples.r
        threads = (
            1
            if self.work < 2 * shared.WORK_PER_THREAD
            else min(shared.thread_count(self.work), len(r))
        )
        if threads == 1:
            self.rows(x, offset, 0, len(r), g, value, add)
            return r
        if threads != len(self._value):
            self._value, self._g = (
                np.empty((threads, *value.shape)),
                np.empty((threads - 1, *g.shape), g.dtype),
            )
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
    """A NumPy array, also a read-only or memory-mapped one."""

    kind = "dense"

    def __init__(self, block: DenseBlock):
        super().__init__(block)
        self.array = block.array


class CompressedRows(Stored):
    """SciPy's CSR."""

    kind = "CSR"

    def __init__(self, block: RowsBlock):
        super().__init__(block)
        self.parts = block.parts


class CompressedColumns(Stored):
    """SciPy's CSC."""

    kind = "CSC"

    def __init__(self, block: ColumnsBlock):
        super().__init__(block)
        self.parts = block.parts


class Operator(Stored):
    """SciPy's LinearOperator."""

    kind = "operator"

    def __init__(self, block: OperatorBlock):
        super().__init__(block)
        self.operator = block.operator


KIND_OF_BLOCK: dict[type[Block], Any] = {
    DenseBlock: Dense,
    RowsBlock: CompressedRows,
    ColumnsBlock: CompressedColumns,
    OperatorBlock: Operator,
}
