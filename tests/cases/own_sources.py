"""Sources as a user would write them: none of them ever holds A."""

import numpy as np
from scipy import sparse

from adagrad_diff.linalg import Source


class Waves(Source):
    """Row j is cos(j w) for some frequencies w, computed when it is asked for."""

    def __init__(self, samples=60, features=5, rows=16, dtype=np.float64):
        self.shape, self.dtype = (samples, features), dtype
        self.cuts = [*range(0, samples, rows), samples]

    def block(self, k):
        j = np.arange(self.cuts[k], self.cuts[k + 1])
        return np.cos(np.outer(j, 1.0 + np.arange(self.shape[1]) / 7)).astype(self.dtype)


class SparseWaves(Waves):
    """What is small is zero; every other block is sparse."""

    def block(self, k):
        rows = super().block(k)
        rows[np.abs(rows) < 0.6] = 0.0
        return sparse.csr_array(rows) if k % 2 else rows


class OneBuffer(Waves):
    """All blocks come in the same memory."""

    def __init__(self, **options):
        super().__init__(**options)
        self.buffer = np.empty((self.cuts[1], self.shape[1]))

    def block(self, k):
        rows = super().block(k)
        self.buffer[: len(rows)] = rows
        return self.buffer[: len(rows)]


class Replaced(Waves):
    """One of its blocks is another one."""

    def __init__(self, k, other, **options):
        super().__init__(**options)
        self.k, self.other = k, other

    def block(self, k):
        return self.other(super().block(k)) if k == self.k else super().block(k)


class Squares(Source):
    """A positive definite matrix, entry by entry."""

    def __init__(self, size=20, rows=6):
        self.shape, self.cuts = (size, size), [*range(0, size, rows), size]

    def block(self, k):
        i, j = np.arange(self.cuts[k], self.cuts[k + 1])[:, None], np.arange(self.shape[1])
        return np.exp(-np.abs(i - j) / 3.0)


class Stored(Source):
    """An array in blocks of a few rows, every other one sparse."""

    def __init__(self, array, rows=7):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.cuts = [*range(0, len(array), rows), len(array)]

    def block(self, k):
        rows = self.array[self.cuts[k] : self.cuts[k + 1]]
        return sparse.csr_array(rows) if k % 2 else rows


class Remote(Stored):
    """Its blocks live elsewhere, so residuals are computed again when they are needed."""

    far = True


def dense(source):
    """All of it, block by block."""
    blocks = (source.block(k) for k in range(len(source.cuts) - 1))
    return np.vstack(
        [block.toarray() if sparse.issparse(block) else block.copy() for block in blocks]
    )
