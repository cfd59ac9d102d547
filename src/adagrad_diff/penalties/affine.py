"""Affine subspaces: weighted least squares, solved on coordinates that are chosen for the metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lstsq, qr

from .. import _check
from .arrays import (
    EPS,
    RELATIVE,
    by_row,
    by_rows,
    check_length,
    column,
    indicator,
    point,
    quiet,
    tolerance,
)
from .base import Penalty, known_at_zero
from .hyperplane import REFINEMENT_STEPS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


NEGLIGIBLE = 1e-30  # a residual as small as this, where equations and z have no larger terms


def reduced(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return E M and E for an invertible E such that each row has a column of the identity matrix.

    Gauss-Jordan elimination with complete pivoting.
    """
    M, E, waiting = M.copy(), np.eye(len(M)), np.ones(len(M), bool)
    for _ in range(len(M)):
        size = np.where(waiting[:, None], np.abs(M), -1.0)
        row, place = np.unravel_index(np.argmax(size), M.shape)
        waiting[row] = False
        E[row] /= M[row, place]
        M[row] /= M[row, place]
        factors = M[:, place].copy()
        factors[row] = 0.0
        E -= np.outer(factors, E[row])
        M -= np.outer(factors, M[row])
    return M, E


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
        rank = int(np.sum(pivots > max(rows.shape) * EPS * pivots[0]))
        if rank == 0:
            raise ValueError(
                "The 'A' parameter of Affine is zero: the equations A x = b then say nothing about x."
            )
        kept = np.sort(order[:rank])
        self._A, self._b = rows[kept], b[kept]
        self._unit = self._factor(np.ones(rows.shape[1]))
        point = self._move(np.zeros(rows.shape[1]), self._unit)
        rounding = EPS * np.abs(rows).sum(axis=1) * np.abs(point).max() + np.finfo(np.float64).tiny
        off = (
            np.abs(rows @ point - b)
            > RELATIVE * (np.abs(rows) @ np.abs(point) + np.abs(b)) + rounding
        )
        if off.any():
            raise ValueError(
                f"Affine is empty: the equations A x = b contradict each other, for example in row {off.argmax()}."
            )

    def _factor(self, metric: np.ndarray) -> tuple[Any, ...]:
        """Return E, M S^(1/2) and a factorization of M M', where M = E A S^(1/2) is [I, T] up to the order of the columns.

        I + T T' is well conditioned however wild S is, because the pivots are the coordinates that move most easily. A S A'
        is not.
        """
        M, E = reduced(self._A * np.sqrt(metric))
        return E, M * np.sqrt(metric), cho_factor(M @ M.T)

    def _move(self, z: np.ndarray, factor: tuple[Any, ...]) -> np.ndarray:
        """Return the solution that is nearest to z in the metric of the factor."""
        E, M, gram = factor
        before = np.full(len(self._b), np.inf)
        # Once is the formula. Its rounding errors are relative to z, which may be large.
        for k in range(REFINEMENT_STEPS):
            excess = self._A @ z - self._b
            if k > 1 and not (np.abs(excess) < 1e-3 * before).any():  # the rest is rounding
                break
            z = z - cho_solve(gram, E @ excess) @ M
            before = np.abs(excess)
        return z

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        b = column(self._b, x)
        excess = np.abs(self._A @ x - b)
        # An equation with b = 0 gives no size: then 1, as for a box.
        part = tolerance(x.dtype)
        slack = (part * np.abs(self._A)) @ np.abs(x) + part * np.where(b == 0.0, 1.0, np.abs(b))
        return indicator(((excess <= slack) & (excess < np.inf)).all(axis=0))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        rounding = 8 * float(np.finfo(z.dtype).eps)

        def project(z: np.ndarray, step: np.ndarray) -> np.ndarray:
            known, factor = np.ones(z.shape[1]), self._unit
            for k, metric in enumerate(step / step[:, :1]):
                size = np.abs(self._A) @ np.abs(z[k]) + np.abs(self._b)
                slack = rounding * size + NEGLIGIBLE * max(size.max(), 1.0)
                if (np.abs(self._A @ z[k] - self._b) <= slack).all():
                    continue
                if (metric != known).any():
                    known, factor = metric, self._factor(metric)
                z[k] = self._move(z[k], factor)
            return z

        by_rows(project, z, step, out)

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
        check_length(size, self.A.shape[1], "Affine", "columns")
