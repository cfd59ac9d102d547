"""A Newton step by products only: descent column by column, then conjugate gradients on the coordinates that are free."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import kernels
from .columns import SparseColumns
from .loss_model import LinearLossModel, LossModel
from .quadratic_terms import Pieces

MOST_PRODUCTS = 500
COLUMN_SWEEPS = 30
FAR = 1e-5  # part of the objective
FLAT = {
    True: 1e-15,
    False: 1e-8,
}  # part of the diagonal's curvature below which a direction is flat; with kinks, it ends there


class Large:
    """min_v g'(v - x) + (v - x)'H(v - x)/2 + phi(v), approximately, on many coordinates."""

    def __init__(self, model: LossModel, q: Pieces, index: np.ndarray, x: np.ndarray, size: float):
        self.model, self.q, self.index, self.size = model, q, index, size
        bound = np.maximum(model.bound()[index], 1e-300)
        self.diagonal = model.diagonal()[index]
        self.metric = np.maximum(self.diagonal + q.l2, 1e-12 * bound)
        self.v, self.g = x.copy(), model.gradient[index].copy()

    def _times(self, d: np.ndarray) -> np.ndarray:
        return self.model.product(self.index, d)

    def solve(self, gain: float) -> np.ndarray:
        """The next point; far from the end, when steps of single coordinates would bring much, it is a rough one."""
        if self.q.smooth:
            return np.asarray(
                self.v
                + self._direction(np.ones(self.v.size, bool), self.q.residual(self.v, self.g))
            )
        far = gain > FAR * self.size
        if self._descend(0.1 if far else 1e-3):
            if not far:
                free = self.q.free(self.v)
                self._step(free, np.where(free, self.q.residual(self.v, self.g), 0.0))
            return self.v
        r = self.q.residual(self.v, self.g)
        free = self.q.free(self.v)
        if (
            self.q.strength is not None and (r[~free] != 0).any()
        ):  # groups that are to come in: a gradient step
            sizes = np.bincount(self.q.labels, self.metric, self.q.strength.size)  # type: ignore[arg-type]
            step = 1.0 / sizes[self.q.labels]
            return np.where(free, self.v, self.v - step * r)
        self._step(free | (r != 0), r)
        return self.v

    def _descend(self, part: float) -> bool:
        """Column by column, if there are columns."""
        model, q = self.model, self.q
        chosen = model.select(self.index) if isinstance(model, LinearLossModel) else None
        if q.strength is not None or not isinstance(chosen, SparseColumns):
            return False
        A, start = chosen.by_columns, self.v.copy()
        kernels.descend_columns(
            A.indptr, A.indices, A.data, chosen.center, model.h, self.diagonal, A.T @ model.h, self.v, self.g,  # type: ignore[attr-defined]
            q.l1, q.l2, q.lower, q.upper, COLUMN_SWEEPS, part,
        )  # fmt: skip
        self.g += self._times(self.v - start)
        return True

    def _direction(self, free: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The Newton direction on some coordinates, zero elsewhere."""
        q, v = self.q, self.v

        def product(d: np.ndarray) -> np.ndarray:
            return np.where(free, self._times(d) + q.l2 * d + q.bend_product(v, d), 0.0)

        return conjugate_gradients(
            product, np.where(free, -r, 0.0), self.metric, FLAT[q.smooth], self.size
        )

    def _step(self, free: np.ndarray, r: np.ndarray) -> None:
        """One step on these coordinates, put back upon their pieces."""
        q, v = self.q, self.v
        d = self._direction(free, r)
        before, slack = q.value(v), 1e-15 * self.size
        for t in (1.0, 0.5, q.reach(v, d), 0.1):
            new = q.kept(v, v + t * d)
            new = np.where(
                (v == 0) & (q.l1 > 0) & (new * r > 0), 0.0, new
            )  # what was to leave zero leaves it downhill
            step = new - v
            image = self._times(step)
            if float(self.g @ step + 0.5 * (step @ image)) + q.value(new) - before <= slack:
                self.v, self.g = new, self.g + image
                return


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    diagonal: np.ndarray,
    flat: float,
    size: float,
) -> np.ndarray:
    """An approximate solution d of M d = right, preconditioned by the diagonal; the closer to the end, the more exactly."""
    d, rest = np.zeros(right.size), right.copy()
    y = rest / diagonal
    direction, rho = y.copy(), float(rest @ y)
    goal = rho * min(0.05, max(rho / size, 1e-4))
    for _ in range(MOST_PRODUCTS):
        if not rho > goal:
            break
        image = product(direction)
        curve = float(direction @ image)
        if not curve > flat * float(direction @ (diagonal * direction)):
            break
        alpha = rho / curve
        d += alpha * direction
        rest -= alpha * image
        y = rest / diagonal
        new = float(rest @ y)
        direction = y + (new / rho) * direction
        rho = new
    return d if d.any() else right / diagonal
