"""The normal equations of a step: (A' D A + E) x = h with diagonal matrices D > 0 and E >= 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from .._threads import over_rows, thread_count
from ..linalg import kernels
from ..linalg.dense import DenseBlock

NARROW = 64  # columns up to which a loop of ours is as fast as BLAS
TOGETHER = 1 << 19  # entries of A that are scaled together, so that they stay in the cache
SHIFTS = (
    0.0,
    1e-14,
    1e-11,
    1e-8,
)  # of the diagonal, relative: for columns that depend on each other
WIDE = (
    1.5  # times as many coordinates as rows from which on the system of the rows is the smaller one
)


class Matrix(DenseBlock):
    """Products as new vectors. Not by BLAS: NumPy and SciPy bring one each, and their threads, which wait busily, are in each
    other's way."""

    def times(self, x: np.ndarray) -> np.ndarray:
        """A x"""
        self.dot(x, z := np.empty(self.shape[0]))
        return z

    def back(self, r: np.ndarray) -> np.ndarray:
        """A' r"""
        self.tdot(r, g := np.empty(self.shape[1]))
        return g


class Normal:
    """A in C order, factorised for one D and E after the other."""

    def __init__(self, matrix: Matrix):
        self.matrix, self.A = matrix, matrix.array
        A = self.A
        rows, columns = A.shape
        self.wide, self.step = columns > WIDE * rows, max(1, TOGETHER // max(columns, 1))

    def factorise(self, D: np.ndarray, E: np.ndarray) -> bool:
        """False if the matrix is singular, or has entries that are no numbers."""
        self.D, self.E = D, E
        self.free = np.flatnonzero(E <= 0.0) if self.wide else np.empty(0, int)
        self.by_rows = self.wide and self.free.size <= len(self.A) // 2
        if self.by_rows:
            return self._factorise_rows(D, E)
        self.factor = _cholesky(self._gram(D), E)
        return self.factor is not None

    def solve(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x, and y = D A x."""
        if not self.by_rows:
            x = _back(self.factor, h)
            return x, self.D * self.matrix.times(x)
        x, y = self._solve_rows(h, 0.0)
        more, shift = self._solve_rows(
            h - self.E * x - self.matrix.back(y), y / self.D - self.matrix.times(x)
        )  # where E is next to nothing
        return x + more, y + shift

    def _solve_rows(self, h: np.ndarray, g: Any) -> tuple[np.ndarray, np.ndarray]:
        """E x + A' y = h, A x - D^-1 y = g."""
        y = _back(self.factor, self.matrix.times(self.inverse * h) - g)
        if self.free.size:
            x_free = _back(self.schur, h[self.free] - self.columns.T @ y)
            y = y + self.reached @ x_free
        x: np.ndarray = self.inverse * (h - self.matrix.back(y))
        if self.free.size:
            x[self.free] = x_free
        return x, y

    def _factorise_rows(self, D: np.ndarray, E: np.ndarray) -> bool:
        """With T = D^-1 + A E^-1 A': T y = A E^-1 h - g + F x_F, F' y = h_F, F the columns without a diagonal."""
        self.inverse = np.divide(1.0, E, out=np.zeros_like(E), where=E > 0.0)
        T = blas.dsyrk(1.0, (self.A * np.sqrt(self.inverse)).T, trans=1)
        self.factor = _cholesky(T, 1.0 / D)
        if self.factor is None or not self.free.size:
            return self.factor is not None
        self.columns = self.A[:, self.free]
        self.reached = _back(self.factor, self.columns)
        self.schur = _cholesky(
            np.asfortranarray(self.columns.T @ self.reached), np.zeros(self.free.size)
        )
        return self.schur is not None

    def _gram(self, D: np.ndarray) -> np.ndarray:
        """A' D A, its upper triangle: by a loop of ours if it is narrow, else by BLAS, some rows at a time."""
        (rows, columns), A = self.A.shape, self.A
        if columns <= NARROW:
            threads = min(thread_count(rows * columns * columns / 4), max(rows, 1))
            parts = np.zeros((threads, columns, columns))
            over_rows(lambda k, lo, hi: kernels.add_gram(A, D, lo, hi, parts[k]), rows, threads)
            return np.asfortranarray(parts.sum(axis=0))
        root, G = np.sqrt(D)[:, None], np.zeros((columns, columns), order="F")
        for lo in range(0, rows, self.step):
            part = A[lo : lo + self.step] * root[lo : lo + self.step]
            G = blas.dsyrk(1.0, part.T, beta=1.0, c=G, overwrite_c=True)
        return G


def _cholesky(G: np.ndarray, E: np.ndarray) -> Any:
    """The factor of G + E, of which only the upper triangle is read; None if there is none."""
    diagonal = G.diagonal() + E
    for shift in SHIFTS:
        M = G.copy(order="F")
        M.flat[:: len(G) + 1] = diagonal + shift * (diagonal + 1e-3 * diagonal.max())
        factor, failed = lapack.dpotrf(M, overwrite_a=True, clean=False)
        if (
            not failed and factor.diagonal().min(initial=1.0) > 0.0
        ):  # NaN are no failure for all versions of LAPACK
            return factor
    return None


def _back(factor: np.ndarray, h: np.ndarray) -> np.ndarray:
    x, _ = lapack.dpotrs(factor, h)
    return np.asarray(x)
