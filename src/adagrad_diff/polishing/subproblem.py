"""The subproblem of a Newton step: a quadratic function plus a penalty of separable terms.

Descent in single coordinates or groups identifies the smooth part of the penalty. Newton steps solve
the problem there: with a Cholesky factor of the Hessian, or by conjugate gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from . import kernels
from .columns import SparseColumns
from .linear_algebra import Cholesky
from .loss_model import LinearLossModel, LossModel
from .quadratic_terms import Terms

MAX_DESCENTS = 30  # each followed by Newton steps
DESCENT_STEPS = 5  # per coordinate and descent
MAX_REMAINING = 0.9  # of the possible gain, after a descent and Newton steps that are worthwhile
MAX_SHORTENED_STEPS = 6  # Newton steps between two descents
LEAST_PIVOT = 1e-12  # square of a pivot below which a Hessian counts as singular
RELATIVE_ROUNDING = 4e-16  # of a change of the objective

MAX_PRODUCTS = 500  # of conjugate gradients
COLUMN_SWEEPS = 30
FAR = 1e-5  # part of the objective: with a larger possible gain, the solution is approximate
# Part of the curvature of the diagonal below which a direction is flat and conjugate gradients end:
# for smooth penalties and for others.
FLAT = {True: 1e-15, False: 1e-8}


class Subproblem(ABC):
    """min_v g'(v - x) + (v - x)'H(v - x)/2 + phi(v), with v = x and the gradient g at first."""

    def __init__(self, g: np.ndarray, x: np.ndarray, terms: Terms):
        self.v, self.g, self.terms = x, g.copy(), terms

    @abstractmethod
    def _times(self, d: np.ndarray) -> np.ndarray:
        """Return H d."""

    @abstractmethod
    def _directions(self, free: np.ndarray, r: np.ndarray) -> Iterator[np.ndarray]:
        """Yield Newton directions on free coordinates, where r is the residual."""

    def _step(self, free: np.ndarray, r: np.ndarray) -> bool:
        """Make a step on free coordinates. Return whether the objective has decreased."""
        terms, v = self.terms, self.v
        before = terms.value(v)
        slack = RELATIVE_ROUNDING * (abs(before) + abs(float(self.g @ v)))
        for d in self._directions(free, r):
            reach = terms.reach(v, d)
            for t in (1.0, reach, 0.5 * reach, 0.1 * reach):
                new = terms.kept(v, v + t * d)
                # A coordinate leaves zero in the direction of descent only.
                new = np.where((v == 0) & (terms.l1 > 0) & (new * r > 0), 0.0, new)
                step = new - v
                image = self._times(step)
                change = float(self.g @ step + 0.5 * (step @ image)) + terms.value(new) - before
                if change <= slack:
                    self.v, self.g = new, self.g + image
                    return change < -slack
        return False


class DenseSubproblem(Subproblem):
    """A subproblem whose Hessian is an array."""

    def __init__(self, H: np.ndarray, g: np.ndarray, x: np.ndarray, terms: Terms):
        super().__init__(g, x.copy(), terms)
        self.H, curvature = H, H.diagonal() + terms.l2
        self.inverse = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > 0)

    def solve(self, tol: float) -> np.ndarray:
        """Return v such that steps in single coordinates gain less than tol."""
        terms = self.terms
        if terms.smooth:
            H = self.H + np.diag(terms.l2)
            return np.asarray(self.v - Cholesky(H, LEAST_PIVOT).solve(self.g + terms.l2 * self.v))
        before = np.inf
        for _ in range(MAX_DESCENTS):
            self._descend(0.01 * tol)
            for step in range(MAX_SHORTENED_STEPS + 1):
                free, r = terms.free(self.v), terms.residual(self.v, self.g)
                gains = r * r * self.inverse
                gain = float(gains.sum())
                if gain <= tol:
                    return self.v
                if step == 0:
                    if not gain < MAX_REMAINING * before:  # evaluate the loss again instead
                        return self.v
                    before = gain
                if gains[free].sum() < 0.1 * gains[~free].sum() or not self._step(free, r):
                    break
        return self.v

    def _descend(self, tol: float) -> None:
        terms, call = self.terms, (self.H, self.v, self.g, self.terms.l1, self.terms.l2)
        if terms.strength is None:
            steps = DESCENT_STEPS * self.v.size
            kernels.descend(*call, terms.lower, terms.upper, steps, tol)
            return
        order = np.argsort(terms.labels, kind="stable")  # type: ignore[arg-type]
        starts = np.append(0, np.cumsum(terms.sums(np.ones(self.v.size)))).astype(int)
        bound = terms.sums(self.H.diagonal() + terms.l2)  # the trace
        kernels.descend_groups(*call, terms.strength, order, starts, bound, DESCENT_STEPS, tol)

    def _times(self, d: np.ndarray) -> np.ndarray:
        index = np.flatnonzero(d)
        return np.asarray(self.H @ d if index.size == d.size else d[index] @ self.H[index])

    def _directions(self, free: np.ndarray, r: np.ndarray) -> Iterator[np.ndarray]:
        terms, index = self.terms, np.flatnonzero(free)
        if not index.size:
            return
        M = self.H[np.ix_(index, index)]
        M.flat[:: index.size + 1] += terms.l2[index]
        for majorized in (False,) if terms.strength is None else (False, True):
            groups = 0.0 if terms.strength is None else terms.hessian(self.v, index, majorized)
            d = np.zeros(free.size)
            d[index] = -Cholesky(M + groups, LEAST_PIVOT).solve(r[index])
            yield d


class MatrixFreeSubproblem(Subproblem):
    """A subproblem on many coordinates, whose Hessian is known by its products."""

    def __init__(
        self, model: LossModel, terms: Terms, index: np.ndarray, x: np.ndarray, size: float
    ):
        super().__init__(model.gradient[index], x.copy(), terms)
        self.model, self.index, self.size = model, index, size
        self.diagonal = model.diagonal()[index]
        bound = np.maximum(model.bound()[index], 1e-300)
        self.metric = np.maximum(self.diagonal + terms.l2, 1e-12 * bound)

    def solve(self, gain: float) -> np.ndarray:
        """Return an approximate solution: the better the smaller the possible gain is."""
        terms, v = self.terms, self.v
        r, everywhere = terms.residual(v, self.g), np.ones(v.size, bool)
        if terms.smooth:
            return np.asarray(v + next(self._directions(everywhere, r)))
        far = gain > FAR * self.size
        if self._descend(0.1 if far else 1e-3):
            if not far:
                free = terms.free(self.v)
                self._step(free, np.where(free, terms.residual(self.v, self.g), 0.0))
            return self.v
        free = terms.free(v)
        if terms.strength is not None and (r[~free] != 0).any():  # a gradient step of zero groups
            return np.where(free, v, v - r / terms.sums(self.metric)[terms.labels])
        self._step(free | (r != 0), r)
        return self.v

    def _descend(self, part: float) -> bool:
        """Descend column by column if the columns are sparse."""
        model, terms = self.model, self.terms
        columns = model.select(self.index) if isinstance(model, LinearLossModel) else None
        if terms.strength is not None or not isinstance(columns, SparseColumns):
            return False
        A, h, start = columns.by_columns, model.h, self.v.copy()  # type: ignore[attr-defined]
        bounds = terms.l1, terms.l2, terms.lower, terms.upper
        kernels.descend_columns(
            *(A.indptr, A.indices, A.data, columns.center, h, self.diagonal, A.T @ h),
            *(self.v, self.g, *bounds, COLUMN_SWEEPS, part),
        )
        self.g += self._times(self.v - start)
        return True

    def _times(self, d: np.ndarray) -> np.ndarray:
        return self.model.product(self.index, d)

    def _directions(self, free: np.ndarray, r: np.ndarray) -> Iterator[np.ndarray]:
        terms, v = self.terms, self.v

        def product(d: np.ndarray) -> np.ndarray:
            return np.where(free, self._times(d) + terms.hessian_product(v, d), 0.0)

        right = np.where(free, -r, 0.0)
        yield conjugate_gradients(product, right, self.metric, FLAT[terms.smooth], self.size)


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    diagonal: np.ndarray,
    flat: float,
    size: float,
) -> np.ndarray:
    """Return an approximate solution of M d = right, preconditioned by the diagonal.

    The smaller the possible gain relative to `size`, the more accurate it is.
    """
    d, rest = np.zeros(right.size), right.copy()
    y = rest / diagonal
    direction, rho = y.copy(), float(rest @ y)
    goal = rho * min(0.05, max(rho / size, 1e-4))
    for _ in range(MAX_PRODUCTS):
        if not rho > goal:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > flat * float(direction @ (diagonal * direction)):
            break
        alpha = rho / curvature
        d += alpha * direction
        rest -= alpha * image
        y = rest / diagonal
        new = float(rest @ y)
        direction = y + (new / rho) * direction
        rho = new
    return d if d.any() else right / diagonal
