"""Samples without repetition, in an order of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..data import Source

QUICK_ENTRIES, QUICK_SAMPLES = 1 << 16, 1 << 12  # entries and samples up to which merging takes no time to speak of


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
        return np.array([np.bincount(self.kind[used], row[used], minlength=len(self.first)) for row in u])


def merge(X: Any, y: np.ndarray, weight: np.ndarray | None) -> Merged:
    """Merge samples with equal rows and targets, and sort them."""
    weight = np.ones(len(y)) if weight is None else weight
    if sparse.issparse(X):
        rows = X.tocsr(copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        keys = [rows.indices[lo:hi].tobytes() + rows.data[lo:hi].tobytes() for lo, hi in ends]
    else:
        keys = [row.tobytes() for row in X]
    order = sorted(np.flatnonzero(weight > 0).tolist(), key=lambda j: (keys[j], y[j]))
    first: list[int] = []
    kind = np.full(len(y), -1)
    for j in order:
        if not first or keys[j] != keys[first[-1]] or y[j] != y[first[-1]]:
            first.append(j)
        kind[j] = len(first) - 1
    used = kind >= 0
    total = np.bincount(kind[used], weights=weight[used], minlength=len(first))
    return Merged(np.array(first), kind, total, np.where(used, weight / total[kind], 0.0))


def is_small(X: Any, y: np.ndarray) -> bool:
    """Whether merging takes no time to speak of; a source of the user's own is large."""
    if isinstance(X, Source):
        return False
    return (X.nnz if sparse.issparse(X) else X.size) <= QUICK_ENTRIES and len(y) <= QUICK_SAMPLES


def canonical(X: Any, y: np.ndarray, weight: np.ndarray | None) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Small data in a form that does not depend on the order of the samples, nor on whether weights or repetitions are used.

    Then neither do the results, to the last bit, although the race of step sizes amplifies rounding. Large data are not copied.
    """
    if not is_small(X, y):
        return X, y, weight
    kinds = merge(X, y, weight)
    return X[kinds.first], y[kinds.first], kinds.weight
