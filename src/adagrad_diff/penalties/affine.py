"""Affine subspaces: weighted least squares, solved on coordinates that are chosen for the metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lstsq, qr

from .. import _check
from ..linalg.kernels import compiled
from ._norm import indicator
from ._points import quiet
from ._rows import by_row, check_length, in_double, tolerance
from ._sizes import at_moderate_size
from .base import RELATIVE, Penalty, known_at_zero, point

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@compiled
def reduce(M: Any, E: Any) -> None:
    """M = E0 @ M and E = E0 @ E for the invertible E0 that makes M reduced: each row has a column of the identity matrix"""
    waiting = np.ones(len(M), np.bool_)
    for _ in range(len(M)):
        largest, row, column = -1.0, 0, 0
        for j in range(len(M)):
            if waiting[j]:
                for i in range(M.shape[1]):
                    if abs(M[j, i]) > largest:
                        largest, row, column = abs(M[j, i]), j, i
        waiting[row] = False
        pivot = M[row, column]
        E[row] /= pivot
        M[row] /= pivot
        for j in range(len(M)):
            factor = M[j, column]
            if j != row and factor != 0.0:
                E[j] -= factor * E[row]
                for i in range(M.shape[1]):
                    M[j, i] -= factor * M[row, i]
                M[j, column] = 0.0


class Affine(Penalty):
    r"""The indicator of the solutions of linear equations.

    .. math:: \varphi(x) = 0 \text{ if } A x = b, \text{ else } \infty, \qquad
              \text{prox}(z, s) = z - S A^\top (A S A^\top)^{-1} (A z - b), \quad S = \text{diag}(s)

    Equations that follow from the others are left out. One prox costs O(m^2 d), or O(m d) if all steps are equal.

    Parameters
    ----------
    A : array (m, d)
        Coefficients, dense.
    b : array (m,)
        Right-hand sides.

    Examples
    --------
    >>> from adagrad_diff.penalties import Affine
    >>> Affine([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]], [2.0, 6.0]).prox([4.0, 2.0, 5.0], step=[3.0, 1.0, 1.0]).round(12).tolist()
    [1.0, 1.0, 3.0]
    """

    properties = frozenset({"set"})

    @quiet
    def __init__(self, A: ArrayLike, b: ArrayLike):
        self.A = _check.real_array(A, "The 'A' parameter of Affine").astype(np.float64)
        if self.A.ndim != 2 or 0 in self.A.shape:
            raise ValueError(
                f"The 'A' parameter of Affine must be a matrix. Got shape {self.A.shape} instead."
            )
        _check.finite(self.A, "The 'A' parameter of Affine")
        self.b = _check.vector(b, "The 'b' parameter of Affine", len(self.A)).astype(np.float64)
        largest = np.abs(self.A).max(axis=1, initial=0.0)
        largest = np.where(largest > 0, largest, 1.0)
        rows, b = self.A / largest[:, None], self.b / largest
        _check.finite(
            b, "The 'b' parameter of Affine, divided by the largest entry of each row of A,"
        )
        # Rows that others span add nothing but the question whether b agrees with them.
        R, order = qr(rows.T, mode="r", pivoting=True)
        pivots = np.abs(np.diag(R))
        rank = int(np.sum(pivots > max(rows.shape) * np.finfo(np.float64).eps * pivots[0]))
        if rank == 0:
            raise ValueError(
                "The 'A' parameter of Affine is zero: the equations A x = b then say nothing about x."
            )
        kept = np.sort(order[:rank])
        self._A, self._b = rows[kept], b[kept]
        self._unit = self._factor(np.ones(rows.shape[1]))
        point = self._move(np.zeros(rows.shape[1]), self._b, self._unit)
        rounding = (
            np.finfo(np.float64).eps * np.abs(rows).sum(axis=1) * np.abs(point).max()
            + np.finfo(np.float64).tiny
        )
        off = (
            np.abs(rows @ point - b)
            > RELATIVE * (np.abs(rows) @ np.abs(point) + np.abs(b)) + rounding
        )
        if off.any():
            raise ValueError(
                f"Affine is empty: the equations A x = b contradict each other, for example in row {off.argmax()}."
            )

    def _factor(self, metric: np.ndarray) -> tuple[Any, ...]:
        """E, M S^(1/2) and a factorisation of M M', where M = E A S^(1/2) is [I, T] up to the order of the columns.

        I + T T' is well conditioned however wild S is, because the pivots are the coordinates that move most easily. A S A'
        is not.
        """
        M, E = self._A * np.sqrt(metric), np.eye(len(self._A))
        reduce(M, E)
        return E, M * np.sqrt(metric), cho_factor(M @ M.T)

    def _move(self, z: np.ndarray, b: np.ndarray, factor: tuple[Any, ...]) -> np.ndarray:
        """The point of A x = b that is nearest to z in the metric of the factor."""
        E, M, gram = factor
        x = z.copy()
        before = np.full(len(b), np.inf)
        for trial in range(
            64
        ):  # once is the formula; its rounding errors, relative to z, may be large relative to x
            excess = self._A @ x - b
            if trial > 1 and not (np.abs(excess) < 1e-3 * before).any():  # what is left is rounding
                break
            x -= cho_solve(gram, E @ excess) @ M
            before = np.abs(excess)
        return x

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        b = self._b[:, None] if x.ndim == 2 else self._b
        excess = np.abs(self._A @ x - b)
        # An equation with b = 0 gives no size: then 1, as for a box.
        part = tolerance(x.dtype)
        slack = (part * np.abs(self._A)) @ np.abs(x) + part * np.where(b == 0.0, 1.0, np.abs(b))
        return indicator(((excess <= slack) & (excess < np.inf)).all(axis=0))

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        rounding = 8 * float(np.finfo(z.dtype).eps)
        in_double(
            at_moderate_size(self._rows, lengths=(self._b,), others=(rounding,)), z, step, out
        )

    def _rows(self, z: Any, step: Any, b: Any, rounding: Any, x: Any) -> None:
        """Each row: x = the proximal point of z, or z where that is a solution already"""
        size = np.abs(z) @ np.abs(self._A.T) + np.abs(b)
        nothing = 1e-30 * np.maximum(
            size.max(axis=1, keepdims=True), 1.0
        )  # what is left of zeros that _move computes
        moved = (np.abs(z @ self._A.T - b) > rounding * size + nothing).any(axis=1)
        x[:] = z
        x[~np.isfinite(size).all(axis=1)] = np.nan
        known, factor = np.ones(z.shape[1]), self._unit
        for k in np.flatnonzero(moved):
            metric = step[k] / step[k, 0]
            if (metric != known).any():
                known, factor = metric, self._factor(metric)
            x[k] = self._move(z[k], b, factor)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """<b, t> if y = A' t, else inf."""
        y = point(self, y, "y")
        slack = tolerance(y.dtype)

        def support(y: Any) -> Any:
            if not np.isfinite(y).all():
                return np.inf
            t = lstsq(self._A.T, y)[0]
            spanned = (np.abs(self._A.T @ t - y) <= slack * np.abs(y).max()).all()
            return float(self._b @ t) if spanned else np.inf

        return by_row(support, y)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return known_at_zero(y, e)

    def check_size(self, size: int) -> None:
        check_length(size, self.A.shape[1], "Affine")
