"""A Newton step by products only: conjugate gradients on the free coordinates, put back upon their pieces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .curvature import Curvature
from .manifold import Pieces

MOST_PRODUCTS = 500


def product_step(
    model: Curvature, q: Pieces, index: np.ndarray, x: np.ndarray, r: np.ndarray, shift: float, tol: float
) -> np.ndarray:
    """The next point of some coordinates x, whose smallest subgradient is r."""
    bound = np.maximum(model.bound()[index], 1e-300)
    if q.strength is not None and (zero := ~q.free(x) & (r != 0)).any():  # groups that are to come in: a gradient step
        step = 1.0 / np.bincount(q.labels, bound, q.strength.size)[q.labels]  # type: ignore[index]
        return np.where(zero, x - step * r, x)
    diagonal = np.maximum(model.diagonal()[index] + q.l2, 1e-12 * bound) + shift * bound
    some = np.ones(x.size, bool)

    def product(v: np.ndarray) -> np.ndarray:
        return np.asarray(model.product(index, v) + (q.l2 + shift * bound) * v + q.bend_product(x, some, v))

    d = conjugate_gradients(product, -r, diagonal)
    new = q.kept(x, x + d)
    if q.l1.any():
        new = np.where((x == 0) & (q.l1 > 0) & (new * r > 0), 0.0, new)
    return new


def conjugate_gradients(product: Callable[[np.ndarray], np.ndarray], right: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """An approximate solution d of M d = right, preconditioned by the diagonal; the better the smaller the right side is."""
    d, rest = np.zeros(right.size), right.copy()
    y = rest / diagonal
    direction, rho = y.copy(), float(rest @ y)
    goal = rho * 1e-4
    for _ in range(MOST_PRODUCTS):
        if not rho > goal:
            break
        image = product(direction)
        curve = float(direction @ image)
        if not curve > 1e-16 * float(direction @ (diagonal * direction)):
            break  # flat: what is known is enough
        alpha = rho / curve
        d += alpha * direction
        rest -= alpha * image
        y = rest / diagonal
        new = float(rest @ y)
        direction = y + (new / rho) * direction
        rho = new
    return d if d.any() else right / diagonal
