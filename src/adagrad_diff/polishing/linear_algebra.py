"""Gram matrices, Cholesky factors, and the normal equations of an interior point step."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

BLOCK_ENTRIES = 1 << 17  # entries of A that are scaled together, so that they stay in the cache
# Relative increase of the diagonal of a matrix, tried in turn if it is singular.
SHIFTS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
WIDE = 1.5  # columns per row above which the system of the rows is the smaller one


def weighted_gram(A: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return A' diag(h) A for weights h >= 0."""
    root, rows = np.sqrt(h)[:, None], max(1, BLOCK_ENTRIES // max(A.shape[1], 1))
    half = A[:rows] * root[:rows]
    G: np.ndarray = half.T @ half
    for lo in range(rows, len(A), rows):
        half = A[lo : lo + rows] * root[lo : lo + rows]
        G += half.T @ half
    return G


class Cholesky:
    """The Cholesky factor of a positive semidefinite M, slightly enlarged where M is singular."""

    def __init__(self, M: np.ndarray, least_pivot: float = 0.0):
        """Factorize M.

        Without an increase of the diagonal, squares of pivots must exceed `least_pivot` times the
        diagonal. An increase is at least as large, because smaller ones leave only rounding.
        """
        diagonal = M.diagonal()
        self.diagonal = np.where(diagonal > 0.0, diagonal, 1.0)
        for shift in SHIFTS:
            if 0.0 < shift < least_pivot:
                continue
            if shift or not diagonal.all():
                M = M.copy()
                M.flat[:: len(M) + 1] = self.diagonal * (1.0 + shift)
            factor, failed = dpotrf(M.T, clean=False)
            pivots = np.square(factor.diagonal()) / self.diagonal
            # Not all versions of LAPACK report NaN as a failure.
            if not failed and pivots.min(initial=1.0) > (0.0 if shift else least_pivot):
                self.factor: np.ndarray | None = factor
                return
        self.factor = None

    def solve(self, h: np.ndarray) -> np.ndarray:
        """Return M^-1 h for one right side or several columns."""
        if self.factor is None:
            return np.asarray((h.T / self.diagonal).T)
        return np.asarray(dpotrs(self.factor, h)[0]) if h.size else h


class NormalEquations:
    """The equations (A' D A + E) x = h for a given A, with diagonal matrices D > 0 and E >= 0."""

    def __init__(self, A: np.ndarray):
        self.A, self.wide = A, A.shape[1] > WIDE * len(A)

    def factorize(self, D: np.ndarray, E: np.ndarray) -> bool:
        """Return whether the matrix has a factor: it may be singular, or have entries like NaN."""
        self.D, self.E = D, E
        self.free = np.flatnonzero(E <= 0.0) if self.wide else np.empty(0, int)
        self.by_rows = self.wide and self.free.size <= len(self.A) // 2
        if not self.by_rows:
            G = weighted_gram(self.A, D)
            G.flat[:: len(E) + 1] += E
            self.factor = Cholesky(G)
            return self.factor.factor is not None
        # With T = D^-1 + A E^-1 A', and F the columns whose entry of E is zero:
        # T y = A E^-1 h - g + F x_F, F' y = h_F
        self.inverse = np.divide(1.0, E, out=np.zeros_like(E), where=E > 0.0)
        T = weighted_gram(self.A.T, self.inverse)
        T.flat[:: len(D) + 1] += 1.0 / D
        self.factor, self.columns = Cholesky(T), self.A[:, self.free]
        self.reached = self.factor.solve(self.columns)
        self.schur = Cholesky(self.columns.T @ self.reached)
        return self.factor.factor is not None and self.schur.factor is not None

    def solve(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and D A x."""
        if not self.by_rows:
            x = self.factor.solve(h)
            return x, self.D * (self.A @ x)
        x, y = self._solve_rows(h, 0.0)
        # One refinement step, for entries of E that are almost zero.
        dx, dy = self._solve_rows(h - self.E * x - y @ self.A, y / self.D - self.A @ x)
        return x + dx, y + dy

    def _solve_rows(self, h: np.ndarray, g: Any) -> tuple[np.ndarray, np.ndarray]:
        """Solve E x + A' y = h, A x - D^-1 y = g."""
        y = self.factor.solve(self.A @ (self.inverse * h) - g)
        x_free = self.schur.solve(h[self.free] - y @ self.columns)
        y = y + self.reached @ x_free
        x: np.ndarray = self.inverse * (h - y @ self.A)
        x[self.free] = x_free
        return x, y
