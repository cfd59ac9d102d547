"""Merging of equal samples, in an order that does not depend on the order of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..linalg import Source

# Sizes up to which merging takes less than a millisecond.
MERGED_ENTRIES, MERGED_SAMPLES = 1 << 16, 1 << 12


def canonical(
    X: Any, y: np.ndarray, weight: np.ndarray | None
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return small data in a form that does not depend on the order of the samples.

    Nor does it depend on whether samples are repeated or have weights. Then results agree to the
    last bit, although iterations amplify rounding errors. Large data are returned as they are.
    """
    if isinstance(X, Source) or len(y) > MERGED_SAMPLES:
        return X, y, weight
    if (X.nnz if sparse.issparse(X) else X.size) > MERGED_ENTRIES:
        return X, y, weight
    first, total = merge(X, y, weight)
    return X[first], y[first], total


def merge(X: Any, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return one sample for each kind of equal rows and targets, and the weights of the kinds.

    Samples without weight are left out. Kinds are sorted by the bytes of their rows, then by target.
    """
    weight = np.ones(len(y)) if weight is None else weight
    used = np.flatnonzero(weight > 0)
    order, is_new = _sorted(X, y, used)
    total = np.bincount(np.cumsum(is_new) - 1, weights=weight[order])
    return order[is_new], total


def _sorted(X: Any, y: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return these samples in order, and whether each differs from the one before."""
    if not sparse.issparse(X):  # the first column often suffices
        column = X[used, 0]
        words = column.view(f">u{column.itemsize}").astype(np.uint64)  # in the order of their bytes
        order = np.argsort(words)
        is_new = _differs(words[order])
        if is_new.all():
            return used[order], is_new
    keys = _keys(X)
    order = used[np.argsort(y[used], kind="stable")]
    order = order[np.argsort(keys[order], kind="stable")]
    return order, _differs(keys[order]) | _differs(y[order])


def _differs(values: np.ndarray) -> np.ndarray:
    """Return whether each value differs from the one before; the first does."""
    return np.concatenate([[True], values[1:] != values[:-1]])


def _keys(X: Any) -> np.ndarray:
    """Return the bytes of each row."""
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
