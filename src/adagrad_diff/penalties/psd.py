"""Positive semidefinite matrices: an eigenvalue decomposition, in a scalar metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .arrays import as_rows, by_rows, check_length, from_rows, indicator, point, quiet, tolerance
from .base import Penalty, known_at_zero, scalar_step

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class PSD(Penalty):
    r"""The indicator of the symmetric positive semidefinite matrices, flattened row by row.

    .. math:: \varphi(X) = 0 \text{ if } X = X^\top \succeq 0, \text{ else } \infty, \qquad
              \text{prox}(Z, s) = V \max(\Lambda, 0) V^\top, \quad \tfrac12(Z + Z^\top) = V \Lambda V^\top

    The prox is exact if all coordinates share one step.

    Parameters
    ----------
    n : int
        Number of rows and columns: x has n * n coordinates.

    Examples
    --------
    >>> from adagrad_diff.penalties import PSD
    >>> PSD(2).prox([1.0, 2.0, 2.0, 1.0], step=1.0).round(12).tolist()
    [1.5, 1.5, 1.5, 1.5]
    """

    accepts = "scalar"
    properties = frozenset({"set", "cone"})

    def __init__(self, n: int):
        self.n = _check.count(n, "n", "PSD", 1)

    def _matrices(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One symmetric part per trajectory, the largest skew entry, and which are finite (the others are zeros here)."""
        rows = as_rows(x).reshape(-1, self.n, self.n)
        finite = np.isfinite(rows).all(axis=(1, 2))
        rows = np.where(finite[:, None, None], rows, 0.0)
        symmetric = rows / 2 + rows.transpose(0, 2, 1) / 2
        return symmetric, np.abs(rows - symmetric).max(axis=(1, 2)), finite

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        matrices, skew, finite = self._matrices(x)
        eigenvalues = np.linalg.eigvalsh(matrices)
        slack = tolerance(x.dtype) * np.abs(eigenvalues).max(axis=1)
        inside = finite & (eigenvalues[:, 0] >= -slack) & (skew <= slack)
        return from_rows(indicator(inside), x)

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        scalar_step(self, step)  # the projection does not depend on it, but on its being one
        rounding = 8 * float(np.finfo(z.dtype).eps)

        def project(z: np.ndarray, step: np.ndarray) -> np.ndarray:
            matrices, skew, _ = self._matrices(z.T)
            eigenvalues, vectors = np.linalg.eigh(matrices)
            slack = rounding * np.abs(eigenvalues).max(axis=1)
            half = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))[:, None, :]
            x = half @ half.transpose(0, 2, 1)
            x = ((x + x.transpose(0, 2, 1)) / 2).reshape(z.shape)
            inside = (skew == 0.0) & (eigenvalues[:, 0] >= -slack)
            return np.where(inside[:, None], z, x)

        by_rows(project, z, step, out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """0 if the symmetric part of y is negative semidefinite, else inf."""
        y = point(self, y, "y")
        matrices, skew, finite = self._matrices(y)
        eigenvalues = np.linalg.eigvalsh(matrices)
        slack = tolerance(y.dtype) * np.maximum(np.abs(eigenvalues).max(axis=1), skew)
        return from_rows(indicator(finite & (eigenvalues[:, -1] <= slack)), y)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return known_at_zero(y, e)

    def check_size(self, size: int) -> None:
        check_length(size, self.n**2, self.name, "entries")
