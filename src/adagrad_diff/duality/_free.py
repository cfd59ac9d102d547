r"""Directions without a penalty: all of them if there is none, or those in which a set goes on for ever.

There A'(w u) must be zero, or have a certain sign, which rounding prevents. But if the columns of A are independent, every
small change d of A'(w u) is that of a small change of u: one with

.. math:: \sum_j w_j\, \delta_j^2 = d^\top G^{-1} d, \qquad G = A^\top W A.

So a feasible point is near u, and what it costs to go there is bounded by the slopes of the conjugates around u.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg import Block, Source
from ..penalties import Penalty
from ._rounding import factor

MOST_COLUMNS, OPERATIONS = 500, 2e9  # up to which the smallest eigenvalue is computed
ROWS_TOGETHER = 4096  # of A that are copied
LARGE_STEP, AWAY, NO_SIZE = 1e3, 1e13, 1e-300  # a large step, a large distance


def outside(penalty: Penalty, y: np.ndarray, step: float = 1.0) -> tuple[np.ndarray, float]:
    """What to subtract from y to be in the domain of phi*, and phi* there. By Moreau, a point less its prox is in it.

    For a seminorm and a large step, that is in the span of the domain.
    """
    if "set" not in penalty.properties:
        return np.asarray(penalty.prox(y, step)), 0.0
    # From far away, only the directions in which the set goes on for ever are seen.
    scale = 1.0 if "cone" in penalty.properties else AWAY / max(float(np.abs(y).max()), NO_SIZE)
    free = np.asarray(penalty.prox(scale * y, 1.0)) / scale
    rounding = (penalty.accuracy + factor(y.size)) * scale * float(np.abs(y - free) @ np.abs(free))
    return free, float(penalty.conjugate(y - free)) + rounding


def cost_to_enter(
    dual: Any, u: np.ndarray, v: np.ndarray, error: float
) -> tuple[np.ndarray, float]:
    """(u, or a multiple of it, and what a feasible point nearby has more than u of both conjugates); inf if none is known.

    v is A'(w u), up to `error` times `dual.sizes`.
    """
    penalty, theta = dual.penalty, 1.0
    if not {"set", "seminorm"} & penalty.properties or not dual.independence > 0:
        return u, np.inf
    rounding = penalty.accuracy + factor(v.size)
    free, psi = outside(penalty, -v, LARGE_STEP)
    if "seminorm" in penalty.properties:
        polar = float(penalty.polar(v + free)) * (1.0 + rounding)
        theta = min(1.0, 1.0 / polar) if polar > 0 else 1.0
    used = dual.sizes > 0
    sizes = dual.sizes[used]
    # In units of the columns: what is to be removed, and what is not known of it.
    parts = [free[used] / sizes, np.full(sizes.size, error), rounding * v[used] / sizes]
    away = sum(float(np.linalg.norm(part)) for part in parts) + (
        abs(dual.mean(u)) + error if dual.loss.intercept else 0.0
    )
    u, shrunk, more = _moved(
        dual, np.multiply(u, theta, dtype=np.float64), theta * away / np.sqrt(dual.independence)
    )
    return u, more + shrunk * psi if np.isfinite(psi) else np.inf


def _moved(dual: Any, u: np.ndarray, distance: float) -> tuple[np.ndarray, float, float]:
    """(a multiple of u, the multiple, what a change of this size, a root of weighted squares, adds to sum_j w_j l* at most)."""
    used, kept = dual.weight > 0, 1.0
    weight, low, high = (
        array[used].astype(np.float64) for array in (dual.weight, dual.low, dual.high)
    )
    least, inner = (
        distance / np.sqrt(weight),
        np.minimum(-low, high),
    )  # no sample moves farther than that

    def room(u: np.ndarray) -> np.ndarray:
        return np.asarray(np.minimum(np.minimum(u[used] - low, high - u[used]), dual.spread or 1.0))

    if np.any(room(u) < least) and np.all(
        inner > 0
    ):  # some are at an end of the domain, and zero is not
        kept = 1.0 - min(2.0 * float(np.max(least / inner)), 1.0)
        u = kept * u
    radius = room(u)
    if np.any(radius < least):
        return u, kept, np.inf
    b = dual.b[used] - dual.center
    here, *there = (
        dual.loss.conjugate(u[used] + side * radius, b, dual.loss.theta)
        for side in (0.0, -1.0, 1.0)
    )
    slopes = np.divide(
        np.maximum(np.maximum(*there) - here, 0.0),
        radius,
        out=np.zeros_like(radius),
        where=radius > 0,
    )
    return u, kept, distance * float(np.sqrt(np.sum(weight * slopes**2))) * (1.0 + dual.rounding)


def smallest_eigenvalue(G: np.ndarray, terms: int) -> float:
    """At most that of a Gram matrix whose entries are sums of so many terms."""
    return float(np.linalg.eigvalsh(G)[0]) - factor(terms + len(G)) * float(np.trace(G))


def independence(A: Source, weight: np.ndarray, sizes: np.ndarray, intercept: bool) -> float:
    """At most the smallest eigenvalue of G, columns being scaled by their sizes, with one of ones for an intercept.

    0 if it is not known.
    """
    used, samples = np.flatnonzero(sizes > 0), A.shape[0]
    size = used.size + intercept
    if used.size == 0 or size > MOST_COLUMNS or samples * size**2 > OPERATIONS or A.opaque:
        return 0.0
    return smallest_eigenvalue(A.fold(_gram, sizes, used, intercept, along=(weight,)), samples)


def _gram(
    block: Block, weight: np.ndarray, sizes: np.ndarray, used: np.ndarray, intercept: bool
) -> np.ndarray:
    """The share of a block in G; some of its rows at a time become dense."""
    G = np.zeros((used.size + intercept, used.size + intercept))
    for lo in range(0, block.shape[0], ROWS_TOGETHER):
        part = np.arange(lo, min(lo + ROWS_TOGETHER, block.shape[0]))
        rows = np.ones((part.size, len(G)))
        rows[:, : used.size] = block.rows(part).to_dense()[:, used] / sizes[used]
        G += rows.T @ (weight[part, None].astype(np.float64) * rows)
    return G
