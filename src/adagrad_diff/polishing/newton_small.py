"""A quadratic function plus a penalty on few coordinates, with its matrix at hand: descent finds the pieces, Newton's method
solves on them."""

from __future__ import annotations

import numpy as np

from . import kernels
from .quadratic_terms import Pieces

SMALL_ROUNDS = 30  # of descent and Newton steps
SMALL_SWEEPS = 5  # steps of descent per coordinate, each
SLOW = 0.9  # what is left after a round that was of use, at most
CUT_STEPS = 6  # Newton steps between them, if they are cut short
LEAST_PIVOT = 1e-12  # squares of pivots of a scaled matrix below which it counts as singular


def solve_symmetric(M: np.ndarray, right: np.ndarray) -> np.ndarray:
    """M^-1 right for a positive semidefinite M; where it is singular, of a matrix slightly larger. Right sides are columns."""
    from scipy.linalg.lapack import dpotrs

    diagonal = M.diagonal()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = M * scale[:, None]
    scaled *= scale
    shift, n = 0.0, len(M)
    for _ in range(8):
        shifted = scaled
        if shift:
            shifted = scaled.copy()
            shifted[np.diag_indices(n)] += shift
        elif not diagonal.all():
            shifted = scaled + np.diag((diagonal <= 0).astype(float))
        try:
            factor = np.linalg.cholesky(
                shifted
            )  # NumPy's, as the matrix was: SciPy's library would bring threads of its own
        except np.linalg.LinAlgError:
            factor = None
        if factor is not None and (shift or np.square(factor.diagonal()).min() > LEAST_PIVOT):
            return np.asarray((scale * dpotrs(factor.T, (scale * right.T).T, lower=0)[0].T).T)
        shift = max(100.0 * shift, LEAST_PIVOT)
    return np.asarray((right.T * scale**2).T)


class Small:
    """min_v g'(v - x) + (v - x)'H(v - x)/2 + phi(v), phi being pieces of the same coordinates."""

    def __init__(self, H: np.ndarray, g: np.ndarray, x: np.ndarray, pieces: Pieces):
        self.H, self.p = H, pieces
        self.v, self.g = x.copy(), g.copy()
        self.curve = H.diagonal()
        diagonal = self.curve + pieces.l2
        self.diagonal = np.where(diagonal > 0, diagonal, 1.0)

    def solve(self, tol: float) -> np.ndarray:
        """v such that a step in the diagonal metric brings less than tol."""
        p = self.p
        if p.smooth:
            return np.asarray(
                self.v - solve_symmetric(self.H + np.diag(p.l2), self.g + p.l2 * self.v)
            )
        before = np.inf
        for _ in range(SMALL_ROUNDS):
            self._descend(0.01 * tol)
            if (
                not (gain := p.gain(self.v, self.g, self.curve)) < SLOW * before
            ):  # a new look at the loss is worth more
                break
            before = gain
            for _ in range(CUT_STEPS):
                free = p.free(self.v)
                r = p.residual(self.v, self.g)
                if p.gain(self.v, self.g, self.curve) <= tol:
                    return self.v
                gains = r * r / self.diagonal
                if gains[free].sum() < 0.1 * gains[~free].sum() or not self._newton(
                    np.flatnonzero(free), r
                ):
                    break
        return self.v

    def _descend(self, tol: float) -> None:
        p = self.p
        if p.labels is None or p.strength is None:
            kernels.descend(
                self.H,
                self.v,
                self.g,
                p.l1,
                p.l2,
                p.lower,
                p.upper,
                SMALL_SWEEPS * self.v.size,
                tol,
            )
            return
        order = np.argsort(p.labels, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(p.labels, minlength=p.strength.size))))
        bound = np.bincount(p.labels, self.diagonal, p.strength.size)  # the trace
        kernels.descend_groups(
            self.H, self.v, self.g, p.l1, p.l2, p.strength, order, starts, bound, SMALL_SWEEPS, tol
        )

    def _newton(self, free: np.ndarray, r: np.ndarray) -> bool:
        """One step on the free coordinates; whether it was one."""
        if free.size == 0:
            return False
        p, v = self.p, self.v
        rows = self.H[free]
        M = rows[:, free]
        M[np.diag_indices(free.size)] += p.l2[free]
        before = p.value(v)
        slack = 4e-16 * (abs(before) + abs(float(self.g @ v)))
        for more in (False,) if p.strength is None else (False, True):
            bend = p.bend(v, free, more)
            d = np.zeros(v.size)
            d[free] = -solve_symmetric(M if bend is None else M + bend, r[free])
            whole = p.reach(v, d)
            for t in (1.0, whole, 0.5 * whole, 0.1 * whole):
                new = p.kept(v, v + t * d)
                new = _landed(p, v, d, new) if t == whole < 1.0 else new
                step = new - v
                moved = step[free] @ rows
                change = float(self.g @ step + 0.5 * (step @ moved)) + p.value(new) - before
                if change <= slack:
                    self.v, self.g = new, self.g + moved
                    return change < -slack
        return False


def _landed(p: Pieces, v: np.ndarray, d: np.ndarray, new: np.ndarray) -> np.ndarray:
    """A step as far as the piece goes ends on its border, in spite of rounding."""
    near = (p.l1 > 0) & (v * d < 0) & (np.abs(new) <= 1e-14 * np.abs(v))
    return np.where(near, 0.0, new)
