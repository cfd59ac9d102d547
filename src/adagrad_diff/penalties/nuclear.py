"""The nuclear norm of a matrix: soft-thresholding of its singular values."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import nonnegative
from .arrays import as_rows, by_rows, from_rows, point, quiet, ratio
from .base import Norm, scalar_step

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Nuclear(Norm):
    r"""The nuclear norm: the sum of the singular values of x, read row by row as a matrix.

    .. math:: \varphi(X) = \lambda \sum_k \sigma_k(X), \qquad
              \text{prox}(Z, s) = U \,\text{diag}(\max(\sigma_k - s \lambda, 0))\, V^T, \quad Z = U \,\text{diag}(\sigma)\, V^T

    The prox is known in a scalar metric only.

    Parameters
    ----------
    lam : float
        Strength >= 0.
    shape : (int, int)
        Rows and columns of the matrix; their product is the number of coordinates.

    Examples
    --------
    >>> from adagrad_diff.penalties import Nuclear
    >>> (Nuclear(1.0, shape=(2, 2)).prox([3.0, 0.0, 0.0, -0.5], step=1.0) + 0.0).tolist()
    [2.0, 0.0, 0.0, 0.0]
    """

    accepts = "scalar"

    def __init__(self, lam: float, shape: tuple[int, int]):
        self.lam = nonnegative(lam, "lam", "Nuclear")
        try:
            rows, columns = (operator.index(n) for n in shape if not isinstance(n, bool))
        except (TypeError, ValueError):
            rows = columns = 0
        if min(rows, columns) < 1:
            raise ValueError(
                f"The 'shape' parameter of Nuclear must be two integers >= 1, for example (3, 4). Got {shape!r}."
            )
        self.shape = (rows, columns)

    def _singular(self, x: np.ndarray) -> np.ndarray:
        """The singular values of each trajectory's matrix; NaN if it holds NaN or inf, for which there is no decomposition."""
        matrices = as_rows(x).reshape(-1, *self.shape)
        good = np.isfinite(matrices).all(axis=(1, 2))
        values = np.full((len(matrices), min(self.shape)), np.nan)
        values[good] = np.linalg.svd(matrices[good], compute_uv=False)
        return values

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return from_rows(self.lam * self._singular(x).sum(axis=1), x)

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        def shrink(z: np.ndarray, step: np.ndarray) -> np.ndarray:
            if self.lam == 0.0:
                return z
            u, values, v = np.linalg.svd(z.reshape(-1, *self.shape), full_matrices=False)
            values = np.maximum(values - self.lam * step, 0.0)
            return np.asarray(((u * values[:, None, :]) @ v).reshape(z.shape))

        by_rows(shrink, z, scalar_step(self, step), out)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        return from_rows(ratio(self._singular(y).max(axis=1), self.lam), y)

    def check_size(self, size: int) -> None:
        rows, columns = self.shape
        if rows * columns != size:
            raise ValueError(
                f"Nuclear is of matrices of shape {self.shape}, but there are {size} penalized coordinates."
            )
