"""Blocks of the matrices that users pass, in place, after a check of shape, dtype and entries."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _check
from .block import Block
from .compressed import ColumnsBlock, RowsBlock
from .dense import DenseBlock


def as_block(A: Any, name: str = "A") -> Block:
    """Return A as a block, or raise an error that says what is wrong with it, and where."""
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
    """Return a block of the source of a user. It is checked for non-finite entries if `finite`."""
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
    block.first, block.threaded = first, False  # threads must not change the order of sums
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
    """Return a block in CSR, or in CSC unless `rows`."""
    A = compressed(A, name, rows)
    data = _check.real_array(A.data[: A.indptr[-1]], name)
    try:
        _check.finite(data if finite else data[:0], name)
    except ValueError:  # the index in the matrix is more helpful than that in its data
        entries = A.tocoo()
        p = int(np.argmax(~np.isfinite(entries.data)))
        raise ValueError(
            f"{name} contains {entries.data[p]} at index ({entries.row[p]}, {entries.col[p]}): {_check.MISSING}."
        ) from None
    kind = RowsBlock if A.format == "csr" else ColumnsBlock
    return kind(_as_index(A.indptr), _as_index(A.indices), data, A.shape)


def compressed(A: Any, name: str, rows: bool = False) -> Any:
    """Return a SciPy matrix in CSR, or in CSC unless `rows`, with valid indices."""
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


def check_indices(A: Any, name: str) -> None:
    """Raise if the arrays of a SciPy matrix do not describe one of its shape.

    SciPy replaces arrays of the matrix that it checks, so it checks a copy that shares them.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unsigned integers, which are valid
            if A.format == "coo":
                type(A)((A.data, A.coords), A.shape)
            elif A.format == "dia":
                type(A)((A.data, A.offsets), A.shape)
            elif A.format in ("csr", "csc", "bsr"):
                copy.copy(A).check_format(full_check=True)
                if {A.indptr.dtype.kind, A.indices.dtype.kind} - {"i", "u"}:
                    raise ValueError("indptr and indices must be integers")
                if (A.indptr[1:] < A.indptr[:-1]).any():  # SciPy ignores it without entries
                    raise ValueError("indptr must not decrease")
    except ValueError as error:
        raise ValueError(f"{name} is not a valid {A.format.upper()} matrix: {error}.") from None


def _as_index(array: np.ndarray) -> np.ndarray:
    """Return indices in a form for which the kernels are compiled."""
    known = array.dtype in (np.int32, np.int64) and array.dtype.isnative
    return array if known else array.astype(np.int64)


class OperatorBlock(Block):
    """A LinearOperator of SciPy, as one block."""

    divisible = False
    opaque = True

    def __init__(self, operator: Any, name: str = "A"):
        self.operator, self.name, self.shape = operator, name, operator.shape
        self.size = operator.shape[0] * operator.shape[1]
        self.dtype = np.dtype(np.float32 if operator.dtype == np.float32 else np.float64)

    def dot(self, x: np.ndarray, z: np.ndarray, lo: int = 0, hi: int | None = None) -> None:
        z[...] = self._product("matvec" if x.ndim == 1 else "matmat", x, z.shape)

    def tdot(
        self, r: np.ndarray, g: np.ndarray, lo: int = 0, hi: int | None = None, add: bool = False
    ) -> None:
        product = self._product("rmatvec" if r.ndim == 1 else "rmatmat", r, g.shape)
        g[...] = g + product if add else product

    def _product(self, method: str, vector: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        what = f"{self.name}{'.T @ r' if method[0] == 'r' else ' @ x'} of the LinearOperator {self.name} must"
        try:
            product = np.asarray(getattr(self.operator, method)(vector))
        except NotImplementedError:
            raise ValueError(
                f"the LinearOperator {self.name} has no {method}, which the gradient needs."
            ) from None
        except ValueError as error:  # SciPy's, for example, about a shape
            raise ValueError(f"{what} have shape {shape}. Its {method} failed: {error}") from error
        if product.shape != shape:
            raise ValueError(f"{what} have shape {shape}. Got {product.shape} instead.")
        if product.dtype.kind not in "fiub":
            raise ValueError(f"{what} be real numbers. Got dtype {product.dtype} instead.")
        return product

    def cut(self, lo: int, hi: int) -> OperatorBlock:
        return self

    def applied(self, function: Callable[[np.ndarray], np.ndarray]) -> Block:
        raise NotImplementedError

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        """Return an estimate from one product with random signs."""
        samples, features = self.shape
        self.tdot(
            weight * np.random.default_rng(0).choice([-1.0, 1.0], samples),
            sizes := np.empty(features),
        )
        return np.full(features, np.sqrt(samples) * np.abs(sizes).max())

    def rows(self, index: np.ndarray) -> DenseBlock:
        """Return rows, from one product for each."""
        unit, columns = np.zeros((self.shape[0], index.size)), np.empty((self.shape[1], index.size))
        unit[index, np.arange(index.size)] = 1.0
        self.tdot(unit, columns)
        return DenseBlock(np.ascontiguousarray(columns.T))

    def to_dense(self) -> np.ndarray:
        self.dot(np.eye(self.shape[1]), dense := np.empty(self.shape))
        return dense
