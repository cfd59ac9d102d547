"""Matrices of features: joined from columns, or scaled as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ._columns import LARGEST_VALUE, Feature
from ._registry import DataError

DENSE_ENTRIES = 5_000_000  # of a matrix that is held densely, however few of them are not zero
DENSE_SHARE = 0.25  # of a larger one that are not zero, if it is held densely


def joined(blocks: list[Any]) -> Any:
    """One matrix of several with the same rows, dense unless that were large and mostly zeros."""
    entries = sum(int(np.prod(block.shape)) for block in blocks)
    stored = sum(block.nnz if sparse.issparse(block) else block.size for block in blocks)
    if entries > DENSE_ENTRIES and stored < DENSE_SHARE * entries:
        whole = sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")
        return sparse.csr_array(
            (whole.data, whole.indices.astype(np.int32), whole.indptr.astype(np.int32)),
            shape=whole.shape,
        )
    return np.hstack([block.toarray() if sparse.issparse(block) else block for block in blocks])


def scaled(A: Any, file: str, standardize: bool) -> tuple[Any, list[Feature]]:
    """A matrix of numbers and its features, numbered from 1; sparse ones keep their zeros."""
    entries = A.data if sparse.issparse(A) else A
    if not entries.size:
        raise DataError(f"{file} has no feature.")
    if (bad := ~(np.abs(entries) <= LARGEST_VALUE)).any():
        raise DataError(
            f"{file} holds the value {entries[bad].flat[0]}: remove the rows that have it, or use other units."
        )
    shift, scale = np.zeros(A.shape[1]), np.ones(A.shape[1])
    if standardize:
        if sparse.issparse(A):
            scale = np.sqrt(np.asarray(A.multiply(A).mean(axis=0)).ravel())
        else:
            shift, scale = A.mean(axis=0), A.std(axis=0)
        scale[scale == 0.0] = 1.0
        A = sparse.csr_array(A.multiply(1.0 / scale)) if sparse.issparse(A) else (A - shift) / scale
    return A, [
        Feature(str(j + 1), None, float(shift[j]), float(scale[j])) for j in range(A.shape[1])
    ]
