"""The nuclear norm of a matrix: soft-thresholding of its singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import nonnegative
from ._norm import Norm, ratio
from ._points import point, quiet
from .base import scalar_step

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
            sides = tuple(shape)
        except TypeError:
            sides = ()
        if len(sides) != 2 or not all(
            hasattr(n, "__index__") and not isinstance(n, bool) and n.__index__() >= 1 for n in sides
        ):
            raise ValueError(f"The 'shape' parameter of Nuclear must be two integers >= 1, for example (3, 4). Got {shape!r}.")
        self.shape = (int(sides[0]), int(sides[1]))

    def _matrices(self, x: np.ndarray) -> np.ndarray:
        """One matrix per trajectory, in float64."""
        return np.atleast_2d(x.T).astype(np.float64).reshape(-1, *self.shape)

    def _singular(self, x: np.ndarray) -> np.ndarray:
        """The singular values of each trajectory's matrix; NaN if it holds NaN or inf, for which there is no decomposition."""
        matrices = self._matrices(x)
        good = np.isfinite(matrices).all(axis=(1, 2))
        values = np.full((len(matrices), min(self.shape)), np.nan)
        values[good] = np.linalg.svd(matrices[good], compute_uv=False)
        return values

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return (self.lam * self._singular(x).sum(axis=1)).reshape(x.shape[1:])[()]

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        threshold = self.lam * np.atleast_1d(scalar_step(self, step, z)).astype(np.float64)
        matrices = self._matrices(z)
        good = np.isfinite(matrices).all(axis=(1, 2))
        u, values, v = np.linalg.svd(matrices[good], full_matrices=False)
        matrices[~good] = np.nan
        if self.lam > 0.0:
            matrices[good] = (u * np.maximum(values - threshold[good, None], 0.0)[:, None, :]) @ v
        out[...] = matrices.reshape(-1, len(z)).T.reshape(z.shape)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        return ratio(self._singular(y).max(axis=1), self.lam).reshape(y.shape[1:])[()]

    def check_size(self, size: int) -> None:
        rows, columns = self.shape
        if rows * columns != size:
            raise ValueError(f"Nuclear is of matrices of shape {self.shape}, but there are {size} penalised coordinates.")
