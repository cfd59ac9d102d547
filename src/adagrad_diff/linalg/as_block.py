"""What users pass as a matrix, turned into blocks: their own memory, checked for shape, dtype and non-finite entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ._indices import as_index, check_indices
from .block import Block
from .compressed import ColumnsBlock, RowsBlock
from .dense import DenseBlock
from .operator import OperatorBlock


def as_block(A: Any, name: str = "A") -> Block:
    """Rows in memory, or an operator; an error that says what is wrong with A, and where."""
    from scipy import sparse
    from scipy.sparse.linalg import LinearOperator

    if isinstance(A, LinearOperator):
        if np.dtype(A.dtype).kind not in "fiub":
            raise ValueError(
                f"{name} must be real. Got a LinearOperator of dtype {A.dtype} instead."
            )
        block: Block = OperatorBlock(A, name)
    else:
        block = sparse_block(A, name) if sparse.issparse(A) else dense_block(A, name)
    if 0 in block.shape:
        raise ValueError(
            f"{name} is empty: it has shape {block.shape}. At least one sample and one feature are needed."
        )
    return block


def own_block(
    given: Any, name: str, shape: tuple[int, int], dtype: Any, first: int, finite: bool
) -> Block:
    """A block of a user's own source, as it comes; whether its entries are finite is only looked at if asked for."""
    from scipy import sparse

    found = getattr(given, "shape", None) or np.shape(given)
    if found != shape:
        raise ValueError(f"{name} must have shape {shape}. Got shape {found} instead.")
    block: Block = (
        sparse_block(given, name, finite, rows=True)
        if sparse.issparse(given)
        else dense_block(given, name, finite)
    )
    if block.dtype != dtype:
        block = block.applied(lambda entries: entries.astype(dtype))
    block.first, block.threaded = (
        first,
        False,
    )  # blocks are added up in their order: threads must not change it
    return block


def dense_block(A: Any, name: str, finite: bool = True) -> DenseBlock:
    _check.refuse_text_columns(A, name)
    array = _check.real_array(A, name)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix (samples, features). Got shape {array.shape} instead."
        )
    return DenseBlock(_check.finite(array, name, getattr(A, "columns", None)) if finite else array)


def sparse_block(
    A: Any, name: str, finite: bool = True, rows: bool = False
) -> RowsBlock | ColumnsBlock:
    """CSR and CSC stay as they are, unless rows are asked for; other formats become CSR."""
    A = compressed(A, name, rows)
    data = _check.real_array(A.data[: A.indptr[-1]], name)
    try:
        _check.finite(data if finite else data[:0], name)
    except ValueError:  # say where in the matrix, not where in its data
        entries = A.tocoo()
        p = int(np.argmax(~np.isfinite(entries.data)))
        raise ValueError(
            f"{name} contains {entries.data[p]} at index ({entries.row[p]}, {entries.col[p]}): {_check.MISSING}."
        ) from None
    kind = RowsBlock if A.format == "csr" else ColumnsBlock
    return kind(as_index(A.indptr), as_index(A.indices), data, A.shape)


def compressed(A: Any, name: str, rows: bool = False) -> Any:
    """A SciPy matrix in CSR or CSC whose indices can be believed."""
    if A.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix (samples, features). Got shape {A.shape} instead."
        )
    check_indices(A, name)
    if A.format == "csr" or (A.format == "csc" and not rows):
        return A
    A = A.tocsr()
    check_indices(A, name)
    return A
