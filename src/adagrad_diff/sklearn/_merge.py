"""Samples without repetition, in an order of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..linalg import Source

QUICK_ENTRIES, QUICK_SAMPLES = (
    1 << 16,
    1 << 12,
)  # entries and samples up to which merging takes no time to speak of


class Merged(NamedTuple):
    """A sample that occurs several times is one with the sum of the weights; one without a weight is none."""

    first: np.ndarray  # a sample of each kind
    kind: np.ndarray  # of each sample; -1 if it has no weight
    weight: np.ndarray  # of each kind
    part: np.ndarray  # of each sample in the weight of its kind

    def spread(self, u: np.ndarray) -> np.ndarray:
        """Coefficients of the samples from those (problems, kinds) of the kinds."""
        return np.asarray(np.where(self.kind >= 0, u[:, self.kind], 0) * self.part)

    def gather(self, u: np.ndarray) -> np.ndarray:
        """Coefficients of the kinds: the sums of those (problems, samples) of their samples."""
        used = self.kind >= 0
        return np.array(
            [np.bincount(self.kind[used], row[used], minlength=len(self.first)) for row in u]
        )


def merge(X: Any, y: np.ndarray, weight: np.ndarray | None) -> Merged:
    """Merge samples with equal rows and targets, and sort them: by the bytes of their rows, then by their targets."""
    weight = np.ones(len(y)) if weight is None else weight
    used = np.flatnonzero(weight > 0)
    order, differs = _sorted(X, y, used)
    kind = np.full(len(y), -1)
    kind[order] = np.cumsum(differs) - 1
    first = order[differs]
    total = np.bincount(kind[used], weights=weight[used], minlength=len(first))
    return Merged(first, kind, total, np.where(kind >= 0, weight / total[kind], 0.0))


def _sorted(X: Any, y: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """These samples in order, and whether each differs from the one before."""
    if not sparse.issparse(X):  # mostly the first entries of the rows will do
        entries = X[used, 0]
        words = entries.view(f">u{entries.itemsize}").astype(
            np.uint64
        )  # in the order of their bytes
        order = np.argsort(words)
        differs = _differs(words[order])
        if differs.all():
            return used[order], differs
    keys = _keys(X)
    order = used[np.argsort(y[used], kind="stable")]
    order = order[np.argsort(keys[order], kind="stable")]
    return order, _differs(keys[order]) | _differs(y[order])


def _differs(values: np.ndarray) -> np.ndarray:
    """Whether each value differs from the one before; the first does."""
    return np.concatenate([[True], values[1:] != values[:-1]])


def _keys(X: Any) -> np.ndarray:
    """The bytes of each row. As text of NumPy's, which ends at the last byte that is not zero: rows have one length."""
    if not sparse.issparse(X):
        rows = np.ascontiguousarray(X)
        return rows.view(f"S{rows.shape[1] * rows.itemsize}")[:, 0]
    rows = X.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    keys = np.empty(rows.shape[0], dtype=object)
    for j, (lo, hi) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        keys[j] = rows.indices[lo:hi].tobytes() + rows.data[lo:hi].tobytes()
    return keys


def is_small(X: Any, y: np.ndarray) -> bool:
    """Whether merging takes no time to speak of; a source of the user's own is large."""
    if isinstance(X, Source):
        return False
    return (X.nnz if sparse.issparse(X) else X.size) <= QUICK_ENTRIES and len(y) <= QUICK_SAMPLES


def canonical(
    X: Any, y: np.ndarray, weight: np.ndarray | None
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Small data in a form that does not depend on the order of the samples, nor on whether weights or repetitions are used.

    Then neither do the results, to the last bit, although the race of step sizes amplifies rounding. Large data are not copied.
    """
    if not is_small(X, y):
        return X, y, weight
    kinds = merge(X, y, weight)
    return X[kinds.first], y[kinds.first], kinds.weight
