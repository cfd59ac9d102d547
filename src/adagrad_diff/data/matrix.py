"""The data matrix A: dense, sparse or an operator, behind the two products the linear model needs.

`dot(x, lo, hi, z)` writes z = A[lo:hi] x and `tdot(r, lo, hi, g, add)` writes A[lo:hi]' r to g, or adds it, for one vector or
several side by side. `row_blocks` says which row ranges to go through so that the second product finds A in the cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import kernels
from ..common import check
from ..common.threads import over_rows, thread_count
from ._indices import as_index, check_indices

CACHE = 1 << 22  # bytes of A that are expected to stay in the cache between the two products
STEPS = 30  # of Lanczos' method, where a rough answer will do
DIRECT = 500  # size up to which eigenvalues are computed directly


class Matrix(ABC):
    """A real matrix: its shape, dtype, number of stored entries, and products with ranges of its rows."""

    shape: tuple[int, int]
    dtype: np.dtype
    size: int  # stored entries: multiplications in one product
    divisible = True  # whether products with some of the rows only are possible

    @abstractmethod
    def dot(self, x: np.ndarray, lo: int, hi: int, z: np.ndarray) -> None:
        """z = A[lo:hi] x"""

    @abstractmethod
    def tdot(self, r: np.ndarray, lo: int, hi: int, g: np.ndarray, add: bool = False) -> None:
        """g = A[lo:hi]' r, or g += that"""

    def rows(self, index: np.ndarray) -> Matrix | None:
        """A copy of a few rows in double precision; None if that would take products with all of them."""
        return None

    def row_blocks(self, lo: int, hi: int) -> Iterator[tuple[int, int]]:
        """Ranges that cover lo..hi, each small enough for the cache."""
        bytes_per_row = max(1, self.size // max(1, self.shape[0])) * self.dtype.itemsize
        rows = max(256, CACHE // bytes_per_row) if self.divisible else hi - lo
        return ((first, min(first + rows, hi)) for first in range(lo, hi, max(1, rows)))


class Dense(Matrix):
    """A NumPy array in any order; only one whose entries BLAS cannot address is copied."""

    def __init__(self, array: np.ndarray):
        unit = array.itemsize in array.strides or 1 in array.shape
        self.array = array if unit and min(array.strides, default=0) > 0 else np.ascontiguousarray(array)
        self.shape, self.dtype, self.size = array.shape, array.dtype, array.size

    def dot(self, x, lo, hi, z):
        if self._own(x):
            z[...] = 0
            threads = min(thread_count((hi - lo) * x.size), hi - lo)
            if threads == 1:
                kernels.add_dense_dot(self.array[lo:hi], x, z)
            else:
                over_rows(lambda _, a, b: kernels.add_dense_dot(self.array[lo + a : lo + b], x, z[a:b]), hi - lo, threads)
        else:
            np.matmul(self.array[lo:hi], x, out=z)

    def rows(self, index):
        return Dense(self.array[index].astype(np.float64))

    def _own(self, vector: np.ndarray) -> bool:
        """Whether a product is one for our kernels: after one of BLAS, its threads stay awake and in the way of ours."""
        return vector.ndim == 1 and self.array.flags.c_contiguous

    def tdot(self, r, lo, hi, g, add=False):
        if self._own(r):
            if not add:
                g[...] = 0
            threads = min(thread_count((hi - lo) * g.size), hi - lo)
            if threads == 1:
                kernels.add_dense_tdot(self.array[lo:hi], r, g)
            else:
                parts, rows = np.zeros((threads, g.size), g.dtype), self.array[lo:hi]
                over_rows(lambda k, a, b: kernels.add_dense_tdot(rows[a:b], r[a:b], parts[k]), hi - lo, threads)
                g += parts.sum(axis=0)
        elif add:
            g += self.array[lo:hi].T @ r
        else:
            np.matmul(self.array[lo:hi].T, r, out=g)


def _thin(array: np.ndarray) -> np.ndarray:
    """A single column as a vector: the kernels are twice as fast on that."""
    return array.reshape(-1) if array.ndim == 2 and array.shape[1] == 1 else array


class CompressedRows(Matrix):
    """SciPy's CSR."""

    def __init__(self, indptr, indices, data, shape):
        self.parts, self.shape, self.dtype, self.size = (indptr, indices, data), shape, data.dtype, data.size

    def dot(self, x, lo, hi, z):
        z[...] = 0
        kernels.add_rows_dot(*self.parts, _thin(x), lo, hi, _thin(z))

    def rows(self, index):
        from scipy import sparse

        indptr, indices, data = self.parts
        return as_matrix(sparse.csr_array((data, indices, indptr), shape=self.shape)[index].astype(np.float64))

    def tdot(self, r, lo, hi, g, add=False):
        if not add:
            g[...] = 0
        kernels.add_rows_tdot(*self.parts, _thin(r), lo, hi, _thin(g))


class CompressedColumns(Matrix):
    """SciPy's CSC: the compressed rows of A', with the two products exchanged."""

    divisible = False

    def __init__(self, indptr, indices, data, shape):
        self.parts, self.shape, self.dtype, self.size = (indptr, indices, data), shape, data.dtype, data.size

    def dot(self, x, lo, hi, z):
        z[...] = 0
        kernels.add_rows_tdot(*self.parts, _thin(x), 0, self.shape[1], _thin(z))

    def rows(self, index):
        from scipy import sparse

        indptr, indices, data = self.parts
        return as_matrix(sparse.csc_array((data, indices, indptr), shape=self.shape)[index].tocsr().astype(np.float64))

    def tdot(self, r, lo, hi, g, add=False):
        if not add:
            g[...] = 0
        kernels.add_rows_dot(*self.parts, _thin(r), 0, self.shape[1], _thin(g))


class Operator(Matrix):
    """SciPy's LinearOperator: whatever it computes."""

    divisible = False

    def __init__(self, operator, name="A"):
        self.operator, self.name, self.shape = operator, name, operator.shape
        self.size = operator.shape[0] * operator.shape[1]
        self.dtype = np.dtype(np.float32 if operator.dtype == np.float32 else np.float64)

    def dot(self, x, lo, hi, z):
        z[...] = self._product("matvec" if x.ndim == 1 else "matmat", x, z.shape)

    def tdot(self, r, lo, hi, g, add=False):
        product = self._product("rmatvec" if r.ndim == 1 else "rmatmat", r, g.shape)
        g[...] = g + product if add else product

    def _product(self, method: str, vector: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        what = f"{self.name}{'.T @ r' if method[0] == 'r' else ' @ x'} of the LinearOperator {self.name} must"
        try:
            product = np.asarray(getattr(self.operator, method)(vector))
        except NotImplementedError:
            raise ValueError(f"the LinearOperator {self.name} has no {method}, which the gradient needs.") from None
        except ValueError as error:  # SciPy's, for example, about a shape
            raise ValueError(f"{what} have shape {shape}. Its {method} failed: {error}") from error
        if product.shape != shape:
            raise ValueError(f"{what} have shape {shape}. Got {product.shape} instead.")
        if product.dtype.kind not in "fiub":
            raise ValueError(f"{what} be real numbers. Got dtype {product.dtype} instead.")
        return product


def as_matrix(A: Any, name: str = "A") -> Matrix:
    """A `Matrix` over the caller's own memory, checked for shape, dtype and non-finite entries."""
    from scipy import sparse
    from scipy.sparse.linalg import LinearOperator

    if isinstance(A, LinearOperator):
        if np.dtype(A.dtype).kind not in "fiub":
            raise ValueError(f"{name} must be real. Got a LinearOperator of dtype {A.dtype} instead.")
        matrix: Matrix = Operator(A, name)
    elif sparse.issparse(A):
        if A.ndim != 2:
            raise ValueError(f"{name} must be a matrix (samples, features). Got shape {A.shape} instead.")
        check_indices(A, name)
        if A.format not in ("csr", "csc"):
            A = A.tocsr()
            check_indices(A, name)
        data = check.real_array(A.data[: A.indptr[-1]], name)
        try:
            check.finite(data, name)
        except ValueError:  # say where in the matrix, not where in its data
            entries = A.tocoo()
            p = int(np.argmax(~np.isfinite(entries.data)))
            raise ValueError(
                f"{name} contains {entries.data[p]} at index ({entries.row[p]}, {entries.col[p]}): {check.MISSING}."
            ) from None
        kind = CompressedRows if A.format == "csr" else CompressedColumns
        matrix = kind(as_index(A.indptr), as_index(A.indices), data, A.shape)
    else:
        check.refuse_text_columns(A, name)
        array = check.real_array(A, name)
        if array.ndim != 2:
            raise ValueError(f"{name} must be a matrix (samples, features). Got shape {array.shape} instead.")
        matrix = Dense(check.finite(array, name, getattr(A, "columns", None)))
    if 0 in matrix.shape:
        raise ValueError(f"{name} is empty: it has shape {matrix.shape}. At least one sample and one feature are needed.")
    return matrix


@np.errstate(all="ignore")
def extreme_eigenvalues(product: Callable[[np.ndarray], np.ndarray], size: int) -> tuple[float, float]:
    """(smallest, largest) eigenvalue of a symmetric matrix, as far as a few steps of Lanczos' method see them.

    Never below the smallest nor above the largest, but for rounding. NaN if something overflows.
    """
    basis = np.zeros((min(size, STEPS), size))
    image = np.zeros_like(basis)
    v = np.random.default_rng(0).standard_normal(size)
    for k in range(len(basis)):
        for _ in range(2):  # once is not enough
            v -= basis[:k].T @ (basis[:k] @ v)
        norm = float(np.linalg.norm(v))
        if k and not norm > 1e-10 * float(np.linalg.norm(image[k - 1])):  # the space is complete
            basis, image = basis[:k], image[:k]
            break
        basis[k] = v / norm
        image[k] = product(basis[k])
        v = image[k].copy()
    small = basis @ image.T
    if not np.isfinite(small).all():
        return np.nan, np.nan
    values = np.linalg.eigvalsh((small + small.T) / 2)
    return float(values[0]), float(values[-1])


@np.errstate(all="ignore")
def largest_eigenvalue(product: Callable[[np.ndarray], np.ndarray], size: int) -> float:
    """The largest eigenvalue of a symmetric positive semidefinite matrix, given its product with columns (size, k).

    Infinite if it overflows.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    if size <= DIRECT:
        matrix = product(np.eye(size)).astype(np.float64)
        return float(np.linalg.eigvalsh(matrix)[-1]) if np.isfinite(matrix).all() else np.inf
    operator = LinearOperator((size, size), matvec=lambda v: product(v.reshape(size, 1))[:, 0], dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    first = operator @ start
    if not (np.any(first) and np.isfinite(first).all()):
        return 0.0 if not np.any(first) else np.inf
    return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
