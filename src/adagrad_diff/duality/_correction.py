r"""Small corrections of a dual point, so that it is feasible for raw columns as well.

Scaling u into the dual set because of one column costs its relative excess, and the excess of a large column is at least what
the rounding of u makes of it. A correction

.. math:: \delta = M A_S y, \qquad (A_S^\top W M A_S)\, y = \text{what is missing on the violated columns } S

of the samples with slack, M being their slack, costs next to nothing. It is repeated until A'(w u) is inside the dual set by
more than its rounding error. Equations, for an intercept and for coordinates without a penalty, hold up to rounding only. But as
the columns of the slack samples are independent, some point very near u satisfies them exactly, and what conjugates increase by
on the way is bounded and subtracted. Columns that are simple combinations of others, which is verified exactly, follow.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ..linalg import Source
from ..penalties import Penalty
from ._dependence import follow
from ._linear import Bound, LinearDual, Products
from ._products import EPS, factor

MAX_COLUMNS = 1500  # columns that are corrected together
MAX_MULTIPLICATIONS = 1.5e9  # of one least squares problem
CORRECTIONS = 4  # rounds; after two, only rounding is left
MARGIN = 2.0 * EPS  # distance from the limits in units of `sizes`: above the rounding of u
EQUATION_ROUNDING = 0.125 * EPS  # violation of equations in units of `sizes` that is not corrected
MIN_SLACK = 1e-9  # in units of the largest slack: samples with less are not moved
INWARD = (1e-14, 1e-12)  # shares of the way inside the domain that are tried at degenerate vertices
SAMPLES_PER_COLUMN, MIN_ENTRIES = (
    4,
    1_000_000,
)  # samples that may move, and entries of A in any case
WELL_CONDITIONED = 1e-4  # smallest pivot for which the Gram matrix is accurate enough
INDEPENDENT = 1e-11  # pivot above which a column counts as independent of those before it
DISTANT = 1e13  # distance at which a set looks like its recession cone, in units of the point
SAFETY = 1.0 + 1e-6  # for the rounding of norms


def max_rows(A: Source, columns: int) -> int:
    """Return how many samples are moved at most, so that so many columns become feasible."""
    wanted = max(SAMPLES_PER_COLUMN * columns + 64, int(MIN_ENTRIES * A.shape[0] / max(A.size, 1)))
    affordable = max(columns + 64, int(MAX_MULTIPLICATIONS / max(columns, 1) ** 2))
    return min(A.shape[0], wanted, affordable)


class Movable:
    """The samples with the most slack, and their columns B = sqrt(W M) A_S, scaled to size one.

    Y B = 1 for the columns that are independent.
    """

    def __init__(self, dual: LinearDual, u: np.ndarray, chosen: np.ndarray, share: float):
        self.dual, self.chosen = dual, chosen
        slack, weight = dual.slack(u), dual.weight.astype(np.float64)
        least = max(0.1 * share, MIN_SLACK if not share else 0.0)
        candidates = np.flatnonzero((slack > least * slack.max()) & (weight > 0))
        most = max_rows(dual.loss.A, chosen.size)
        if candidates.size > most:
            nearest = np.argpartition(-slack[candidates], most)[:most]
            candidates = np.sort(candidates[nearest])
        self.samples, self.slack = candidates, slack[candidates]
        self.weight = weight[candidates]
        self.scaling = np.sqrt(self.slack / self.weight)  # from sqrt(W / M) delta to delta
        B = np.sqrt(self.weight * self.slack)[:, None] * self.columns(chosen)
        self.sizes = np.linalg.norm(B, axis=0)
        self.sizes[self.sizes == 0] = 1.0
        B /= self.sizes
        self.independent, self.dependent = np.arange(chosen.size), np.empty(0, int)
        G = B.T @ B
        with contextlib.suppress(np.linalg.LinAlgError):
            if len(B) >= chosen.size and np.diag(np.linalg.cholesky(G)).min() > WELL_CONDITIONED:
                self.B, self.Y = B, np.linalg.solve(G, B.T)
                return
        pivots = np.zeros(chosen.size)
        diagonal = np.abs(np.diag(np.linalg.qr(B)[1]))
        pivots[: diagonal.size] = diagonal
        kept = pivots > INDEPENDENT
        self.independent, self.dependent = np.flatnonzero(kept), np.flatnonzero(~kept)
        self.B = B[:, kept]
        Q, R = np.linalg.qr(self.B)
        self.Y = np.linalg.solve(R, Q.T) if kept.any() else np.empty((0, len(B)))

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        """Return centered columns of the samples."""
        return np.asarray(self.entries(chosen) - np.append(self.dual.means, 0.0)[chosen])

    def entries(self, chosen: np.ndarray) -> np.ndarray:
        """Return columns of the samples; the number of features stands for the intercept."""
        A, features = self.dual.loss.A, self.dual.loss.A.shape[1]
        entries = np.array(A.entries(self.samples, np.minimum(chosen, features - 1)))
        entries[:, chosen == features] = 1.0
        return entries

    def change(self, missing: np.ndarray) -> np.ndarray:
        """Return the smallest delta with A_S'W delta = missing, one column for each class."""
        needed = (missing / self.sizes[:, None])[self.independent]
        return np.asarray(self.scaling[:, None] * (self.Y.T @ needed))

    def least_singular_value(self) -> float:
        """Return at most the smallest singular value of B: Y B = 1 - E is verified for a small E."""
        norm, size = float(np.linalg.norm(self.Y)), float(np.linalg.norm(self.B))
        if norm == 0:
            return np.inf
        off = float(np.linalg.norm(np.eye(len(self.Y)) - self.Y @ self.B))
        off += factor(len(self.B) + 8) * norm * size
        return (1.0 - off) / norm / SAFETY if off < 1.0 else 0.0

    def cost(self, u: np.ndarray, off: np.ndarray) -> tuple[float, float]:
        """Return what conjugates increase by at most when A_S'(w u) changes by at most `off`, and max |delta|.

        Both are infinite if the samples do not have enough slack, or columns are dependent.
        """
        unknown = np.inf, np.inf
        if not off.any():
            return 0.0, 0.0
        least = self.least_singular_value()
        if not (self.samples.size and least > 0) or not follow(self):
            return unknown
        distances = np.linalg.norm((off / self.sizes[:, None])[self.independent], axis=0) / least
        far = float(np.max(self.scaling[:, None] * distances / self.slack[:, None], initial=0.0))
        if not far * SAFETY <= 0.5:
            return unknown
        slopes = self.dual.steepness(u, self.samples, 0.5 * self.slack)
        sizes = np.sqrt(np.sum((self.weight * self.slack)[:, None] * slopes**2, axis=0))
        farthest = float(self.scaling.max(initial=0.0) * distances.max())
        return float(distances @ sizes) * SAFETY, farthest * SAFETY


def corrected_bound(dual: Any, u: np.ndarray, enough: float | None = None) -> Bound:
    """Return a lower bound from a point near u, moved into the dual set.

    With `enough`, other ways are tried until the bound is that large.
    """
    best = Bound(-np.inf, u)
    if not isinstance(dual, LinearDual) or dual.loss.A.opaque:
        return best
    u = dual.clipped(u.reshape(dual.b.shape).astype(np.float64)).reshape(len(u), -1)
    u[dual.weight == 0] = 0.0
    shares = (0.0, *(INWARD if dual.nonsmooth and enough is not None else ()))
    if enough is not None and not _equations(dual).any():  # it may be feasible already
        best = _bound(dual, u, dual.products(u), 0.0)
    for share in shares:
        if enough is not None and best.value >= enough:
            break
        point, products = _corrected(dual, dual.inward(u, share) if share else u, share)
        best = max(best, _bound(dual, point, products, share), key=lambda bound: bound.value)
    return best


def _equations(dual: LinearDual) -> np.ndarray:
    """Return for which features A'(w u) must be zero."""
    low, high = dual.limits
    features = dual.loss.A.shape[1]
    return np.asarray(((low == 0) & (high == 0)).all(axis=1)[:features])


def _corrected(dual: LinearDual, u: np.ndarray, share: float) -> tuple[np.ndarray, Products]:
    """Return u, moved into the dual set as far as that is possible, and its products."""
    movable, products = None, dual.products(u)
    chosen = np.zeros(len(products.v), bool)
    for _ in range(CORRECTIONS):
        missing, wrong = _missing(dual, products)
        if not wrong.any():
            break
        more = wrong & ~chosen
        chosen |= wrong
        columns = np.flatnonzero(chosen)
        if (
            columns.size > MAX_COLUMNS
            or (columns.size + 64) * columns.size**2 > MAX_MULTIPLICATIONS
        ):
            break
        if movable is None or more.any():
            movable = Movable(dual, u, columns, share)
        change = movable.change(missing[columns])
        if not movable.samples.size or not np.isfinite(change).all():
            break
        far = float(np.max(np.abs(change) / dual.slack(u)[movable.samples, None]))
        u = u.copy()
        u[movable.samples] += change if far <= 0.5 else change * (0.5 / far)
        u = dual.clipped(u.reshape(dual.b.shape)).reshape(u.shape)
        products = dual.products(u)
    return u, products


def _missing(dual: LinearDual, products: Products) -> tuple[np.ndarray, np.ndarray]:
    """Return what to add to v so that it is inside the dual set, and the rows where it is not.

    Rows for several classes sum to zero.
    """
    (v, error), (low, high), features = products, dual.limits, dual.loss.A.shape[1]
    sizes = np.ones_like(v)
    sizes[:features] = dual.spreads.reshape(features, -1)
    ends = np.maximum(-low, high)
    margin = 2.0 * error + MARGIN * sizes + factor(v.size) * np.where(ends < np.inf, ends, 0.0)
    equal = low == high
    if {"norm", "seminorm"} & dual.penalty.properties and not dual.loss.l2:
        target = v.copy()
        target[:features] = _projected(dual.penalty, v[:features], margin[:features])
    else:
        target = np.clip(v, low + margin, np.maximum(high - margin, low + margin))
        if _is_unbounded(dual) and not np.isfinite(ends).any():
            target[:features] += outside(dual.penalty, -v[:features].ravel())[0].reshape(
                -1, v.shape[1]
            )
    target[equal] = low[equal]
    missing = target - v
    if v.shape[1] > 1:  # taken from the class that can best spare it
        free = (missing == 0) & ~equal
        spare = np.argmin(np.where(free, np.abs(v), np.inf), axis=1)
        rows = np.flatnonzero(free.any(axis=1))
        missing[rows, spare[rows]] -= missing[rows].sum(axis=1)
    tolerated = np.where(equal, error + EQUATION_ROUNDING * sizes, 0.0)
    return missing, (np.abs(missing) > tolerated).any(axis=1)


def _projected(penalty: Penalty, v: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """Return v, where it is not inside the dual ball of a norm by the margin, moved there."""
    sign, flat = np.sign(v), np.ravel(v)
    outer = flat + np.ravel(sign * margin)
    excess = np.asarray(penalty.prox(outer, 1.0)).reshape(v.shape)  # by Moreau's decomposition
    inner = outer.reshape(v.shape) - excess
    moved = np.sign(inner) * np.maximum(np.abs(inner) - 2.0 * margin, 0.0)
    return np.where(excess != 0, moved, v)


def _bound(dual: LinearDual, u: np.ndarray, products: Products, share: float) -> Bound:
    """Return a lower bound on D at a feasible point very near u."""
    (v, error), features, intercept = products, dual.loss.A.shape[1], dual.loss.intercept
    sizes, equal = dual.spreads.reshape(features, -1), _equations(dual)
    off, v, e = np.abs(v) + error, v[:features].copy(), error[:features].copy()
    total, error_total = (products.v[-1], error[-1]) if intercept else (None, 0.0)
    cost, chosen, scaled = 0.0, np.empty(0, int), None
    if equal.any():
        chosen = np.flatnonzero(equal)
    elif _is_unbounded(dual) and dual.scaling(v.ravel(), e.ravel())[0] == 0.0:
        chosen = np.flatnonzero(sizes[:, 0] > 0)
        removed, psi = outside(dual.penalty, -v.ravel())
        scaled = dual.scaling((v.ravel() + removed), 0.0 * removed)[0] or 1.0, psi
        off[:features] = np.abs(removed).reshape(v.shape) + e
        off[:features] += (dual.penalty.accuracy + factor(v.size)) * np.abs(v)
    if chosen.size:
        if intercept:
            chosen, total = np.append(chosen, features), None
        cost, moved = Movable(dual, u, chosen, share).cost(u, off[chosen])
        v[equal] = e[equal] = 0.0
        e[~equal] += moved * sizes[~equal]
    if not np.isfinite(cost):
        return Bound(-np.inf, u)
    u = u.reshape(dual.b.shape)
    return dual.evaluate(u, v.ravel(), e.ravel(), total, error_total, cost, scaled)


def _is_unbounded(dual: LinearDual) -> bool:
    """Return whether the penalty may be constant along directions that are not coordinates."""
    return not dual.loss.l2 and bool({"set", "seminorm"} & dual.penalty.properties)


def outside(penalty: Penalty, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return what to subtract from y to be in the domain of phi*, and phi* there.

    By Moreau's decomposition, a point less its prox is in the domain.
    """
    if "set" not in penalty.properties:
        return np.asarray(penalty.prox(y, 1.0)), 0.0
    # From far away, only the directions in which the set is unbounded are seen.
    scale = 1.0 if "cone" in penalty.properties else DISTANT / (float(np.abs(y).max()) or 1.0)
    removed = np.asarray(penalty.prox(scale * y, 1.0)) / scale
    rounding = penalty.accuracy + factor(y.size)
    rounding *= scale * float(np.abs(y - removed) @ np.abs(removed))
    return removed, float(penalty.conjugate(y - removed)) + rounding
