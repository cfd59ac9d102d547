"""The columns of A that a step is about, in double precision; with an intercept they are centered, and ones come last."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..linalg import Block, Source
from ..linalg.source import joined

COPIED_COLUMNS = (
    1 << 25
)  # entries of a copy of some columns; larger ones are gone through block by block


class Columns:
    """All of them: products z = A w + c and A' r, where x = (w, c + center w) if there is an intercept c."""

    density = 1.0  # the part of entries that are stored

    def __init__(self, A: Source, weight: np.ndarray, intercept: bool):
        self.A, self.weight, self.intercept = A, weight, intercept
        self.samples, self.features = A.shape
        self.size = self.features + intercept

    def know(self, moments: Any) -> None:
        """Where a fold takes long, and a race has asked for these already."""
        self.center = (
            moments.mean / self.weight.sum() if self.intercept else np.zeros(self.features)
        )
        self.square = np.append(moments.square, np.ones(int(self.intercept)))

    @cached_property
    def center(self) -> np.ndarray:
        mean = np.zeros(self.features)
        if self.intercept and not self.A.opaque:
            self._tdot(self.weight, mean)
            mean /= self.weight.sum()  # of numbers in single precision that is not quite one
        return mean

    @cached_property
    def square(self) -> np.ndarray:
        """sum_j weight_j a_ji^2 of the columns as they are, and 1 for the intercept."""
        if self.A.opaque:
            sizes = self.A.column_sizes(self.weight)
            return np.append(sizes**2, np.ones(int(self.intercept)))
        return np.append(self._square(self.weight), np.ones(int(self.intercept)))

    @cached_property
    def spread(self) -> np.ndarray:
        """The same of the centered columns."""
        if not self.intercept:
            return self.square
        rest = self.square[:-1] - self.weight.sum() * self.center**2
        return np.append(np.where(rest > 4e-15 * self.square[:-1], rest, 0.0), 1.0)

    def _square(self, weight: np.ndarray) -> np.ndarray:
        total: np.ndarray = self.A.fold(_square, along=(weight,))
        return total

    def dot(self, x: np.ndarray) -> np.ndarray:
        """z of all samples, for x of shape (size,) or (size, classes)."""
        z = np.empty((self.samples, *x.shape[1:]))
        self._dot(np.ascontiguousarray(x[: self.features]), z)
        if self.intercept:
            z += x[-1] - self.center @ x[:-1]
        return z

    def tdot(self, r: np.ndarray) -> np.ndarray:
        """A' r over all columns."""
        g = np.empty((self.size, *r.shape[1:]))
        self._tdot(r, g[: self.features])
        if self.intercept:
            g[-1] = total = r.sum(axis=0)
            g[:-1] -= np.multiply.outer(self.center, total)
        return g

    def _dot(self, x: np.ndarray, z: np.ndarray) -> None:
        self.A.dot(x, z)

    def _tdot(self, r: np.ndarray, g: np.ndarray) -> None:
        self.A.tdot(r, g)

    def diagonal(self, h: np.ndarray) -> np.ndarray:
        """sum_j h_j (a_ji - center_i)^2, and the sum of h; of an operator, a guess."""
        if self.A.opaque:
            return np.asarray(self.square * (h.sum() / self.weight.sum()))
        total = self._square(h)
        if self.intercept:
            shifted = np.empty(self.features)
            self._tdot(h, shifted)
            total += self.center * (self.center * h.sum() - 2.0 * shifted)
            total = np.append(np.maximum(total, 0.0), h.sum())
        return total

    def take(self, index: np.ndarray) -> Chosen:
        """Some of the columns, `index` sorted."""
        entries = self.samples * index.size
        if self.A.opaque or entries > COPIED_COLUMNS:
            return Chosen(self, index)
        return Copied(self, index)


class Chosen:
    """Some of the columns, by products with all of them: for operators, and for what is too large to be copied."""

    def __init__(self, columns: Columns, index: np.ndarray):
        self.columns, self.index = columns, index

    def dot(self, v: np.ndarray) -> np.ndarray:
        x = np.zeros((self.columns.size, *v.shape[1:]))
        x[self.index] = v
        return self.columns.dot(x)

    def tdot(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(self.columns.tdot(r)[self.index])

    def gram(self, h: np.ndarray) -> np.ndarray:
        """A' diag(h) A"""
        columns, features = self.columns, self.index[self.index < self.columns.features]
        total: np.ndarray = columns.A.fold(
            _gram, features, columns.center, columns.intercept, along=(h,)
        )
        return total


class Copied(Chosen):
    """Some of the columns as a dense array."""

    def __init__(self, columns: Columns, index: np.ndarray):
        super().__init__(columns, index)
        features = index[index < columns.features]
        parts = columns.A.fold(_chosen, features, columns.center, columns.intercept, merge=joined)
        self.array = parts[0] if len(parts) == 1 else np.concatenate(parts)

    def dot(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(self.array @ v)

    def tdot(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(self.array.T @ r)

    def gram(self, h: np.ndarray) -> np.ndarray:
        half = self.array * np.sqrt(h)[:, None]
        return np.asarray(half.T @ half)


def dense_part(
    block: Block, features: np.ndarray, center: np.ndarray, intercept: bool
) -> np.ndarray:
    """Some columns of a block, centered and with ones in the end if there is an intercept."""
    array, whole = _entries(block), features.size == block.shape[1]
    some = array if whole else array[:, features]
    some = some if isinstance(some, np.ndarray) else some.toarray()
    if not intercept:
        return some.astype(np.float64, copy=False)
    part = np.ones((some.shape[0], features.size + 1))
    np.subtract(some, center[features], out=part[:, :-1])
    return part


def _entries(block: Block) -> Any:
    """Dense or sparse, as they are."""
    return block.to_dense() if hasattr(block, "array") else block.to_sparse()


def _chosen(
    block: Block, features: np.ndarray, center: np.ndarray, intercept: bool
) -> list[np.ndarray]:
    part = dense_part(block, features, center, intercept)
    return [
        part if block.threaded or part.base is None else part.copy()
    ]  # the next block may come in the same memory


def _gram(
    block: Block, h: np.ndarray, features: np.ndarray, center: np.ndarray, intercept: bool
) -> np.ndarray:
    half = dense_part(block, features, center, intercept) * np.sqrt(h)[:, None]
    return np.asarray(half.T @ half)


def _square(block: Block, weight: np.ndarray) -> np.ndarray:
    if isinstance(entries := _entries(block), np.ndarray):
        return np.asarray(weight @ np.square(entries, dtype=np.float64))
    return np.asarray(entries.astype(np.float64).power(2).T @ weight)
