"""The nuclear norm of a matrix: soft-thresholding of its singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import nonnegative
from ._norm import Norm, ratio
from ._points import quiet
from ._rows import as_rows, in_double
from ._sizes import at_moderate_size
from .base import point, scalar_step

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
            sides = tuple(shape) if np.ndim(shape) == 1 else ()
        except (TypeError, ValueError):  # nothing to count, or lists of different lengths
            sides = ()
        if len(sides) != 2 or not all(
            hasattr(n, "__index__") and not isinstance(n, bool) and n.__index__() >= 1
            for n in sides
        ):
            raise ValueError(
                f"The 'shape' parameter of Nuclear must be two integers >= 1, for example (3, 4). Got {shape!r}."
            )
        self.shape = (int(sides[0]), int(sides[1]))

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
        return (self.lam * self._singular(x).sum(axis=1)).reshape(x.shape[1:])[()]

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        step = np.broadcast_to(scalar_step(self, step, z), z.shape)
        in_double(at_moderate_size(self._rows, strengths=(self.lam,)), z, step, out)

    def _rows(self, z: Any, step: Any, lam: Any, x: Any) -> None:
        """Each row, with its one step."""
        matrices = z.reshape(-1, *self.shape)
        good = np.isfinite(matrices).all(axis=(1, 2))
        x[:] = np.where(good[:, None], z, np.nan)
        if lam > 0.0:
            u, values, v = np.linalg.svd(matrices[good], full_matrices=False)
            shrunk = np.maximum(values - lam * step[good, :1], 0.0)
            x[good] = ((u * shrunk[:, None, :]) @ v).reshape(-1, z.shape[1])

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        return ratio(self._singular(y).max(axis=1), self.lam).reshape(y.shape[1:])[()]

    def check_size(self, size: int) -> None:
        rows, columns = self.shape
        if rows * columns != size:
            raise ValueError(
                f"Nuclear is of matrices of shape {self.shape}, but there are {size} penalised coordinates."
            )
