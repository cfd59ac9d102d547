"""The group prox for many small groups: Newton's method on a tile of them side by side.

A group of ten costs a few divisions and square roots that wait for each other. With `GROUP_TILE` groups (or trajectories of a
group) in the columns of a small matrix they do not, and the compiler puts them into vector registers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._threads import over_rows, thread_count
from ..linalg.kernels import compiled
from ._roots import NEGLIGIBLE, by_rows, group_rows
from ._sizes import LEAST_MODERATE, MOST_MODERATE

if TYPE_CHECKING:
    from .group_l2 import GroupL2

GROUP_TILE = 128  # problems that are solved side by side
SUBNORMAL = 2.0**-1074  # the smallest number: a pull that vanishes is not one of strength zero
SMALL_GROUP = 256  # coordinates of the largest group for which that pays


@compiled
def solve_tile(c: Any, a: Any, size: Any, count: Any, work: Any, active: Any) -> None:
    """c <- c h / (h + a) column by column, h > 0 with sum((c / (h + a))**2) = 1 or 0 if there is none.

    As `_roots.secular_newton`, for the first `count` columns of the first `size` rows; columns with a = 0 stay.
    """
    low, least, h, square, slope, factor = work[0], work[1], work[2], work[3], work[4], work[5]
    for t in range(count):
        low[t], least[t], active[t], factor[t] = 0.0, np.inf, True, 0.0
    for i in range(size):
        for t in range(count):
            factor[t] = max(factor[t], abs(c[i, t]))
    scaled = False
    for t in range(count):
        most, factor[t] = factor[t], 1.0
        if (most < LEAST_MODERATE or most > MOST_MODERATE) and 0.0 < most < np.inf:
            factor[t], scaled = math.ldexp(1.0, min(-math.frexp(most)[1], 1000)), True
    if scaled:
        for i in range(size):
            for t in range(count):
                c[i, t] *= factor[t]
                a[i, t] *= factor[t]
    for i in range(size):
        for t in range(count):
            a[i, t] = NEGLIGIBLE if 0.0 < a[i, t] < NEGLIGIBLE else a[i, t]
            low[t] = max(low[t], abs(c[i, t]) - a[i, t])
            least[t] = min(least[t], a[i, t])
    for t in range(count):
        h[t] = low[t]
    for _ in range(200):
        for t in range(count):
            square[t], slope[t] = 0.0, 0.0
        for i in range(size):
            for t in range(count):
                inverse = 1.0 / (h[t] + a[i, t])
                term = c[i, t] * inverse
                square[t] += term * term
                slope[t] += term * term * inverse
        left = 0
        for t in range(count):
            if active[t]:
                excess = np.sqrt(square[t]) - 1.0
                if np.isnan(excess):
                    h[t], active[t] = excess, False
                elif excess <= 1e-14:
                    active[t] = False
                else:
                    change = excess * square[t] / slope[t]
                    active[t] = excess * change > 1e-14 * (h[t] + least[t])
                    h[t] += change
                    left += active[t]
        if left == 0:
            break
    for i in range(size):
        for t in range(count):
            c[i, t] *= h[t] / (h[t] + a[i, t]) if a[i, t] > 0.0 else 1.0
    if scaled:
        for i in range(size):
            for t in range(count):
                c[i, t] /= factor[t]


@compiled
def group_tiles(
    z: Any,
    step: Any,
    l1: float,
    strength: Any,
    order: Any,
    starts: Any,
    lo: int,
    hi: int,
    most: int,
    out: Any,
) -> None:
    """As `_roots.group_rows`, for groups lo..hi of at most `most` coordinates, and z of shape (d, B)."""
    B = z.shape[1]
    columns = min(B, GROUP_TILE)
    together = GROUP_TILE // columns
    c, a = np.empty((most, GROUP_TILE)), np.empty((most, GROUP_TILE))
    work, active = np.empty((6, GROUP_TILE)), np.empty(GROUP_TILE, np.bool_)
    for g0 in range(lo, hi, together):
        g1, size = min(g0 + together, hi), 0
        for g in range(g0, g1):
            size = max(size, starts[g + 1] - starts[g])
        for k0 in range(0, B, columns):
            n = min(columns, B - k0)
            for g in range(g0, g1):
                base, lam, own = (g - g0) * n, strength[g], starts[g + 1] - starts[g]
                least = SUBNORMAL if lam > 0.0 else 0.0
                for i in range(own):
                    place = np.uint64(order[np.uint64(starts[g] + i)])
                    for k in range(n):
                        s, v = np.float64(step[place, k0 + k]), np.float64(z[place, k0 + k])
                        rest = abs(v) - l1 * s
                        c[i, base + k] = np.copysign(0.0 if rest < 0.0 else rest, v)
                        a[i, base + k] = max(lam * s, least)
                for i in range(own, size):  # padding that adds nothing
                    for k in range(n):
                        c[i, base + k], a[i, base + k] = 0.0, np.inf
            solve_tile(c, a, size, (g1 - g0) * n, work, active)
            for g in range(g0, g1):
                base = (g - g0) * n
                for i in range(starts[g + 1] - starts[g]):
                    place = np.uint64(order[np.uint64(starts[g] + i)])
                    for k in range(n):
                        out[place, k0 + k] = c[i, base + k]


@compiled
def group_vector(
    z: Any,
    step: Any,
    l1: float,
    strength: Any,
    order: Any,
    starts: Any,
    lo: int,
    hi: int,
    most: int,
    out: Any,
) -> None:
    """As `group_tiles` for one vector: a tile is gathered in one go, so that the misses of the cache overlap."""
    c, a = np.empty((most, GROUP_TILE)), np.empty((most, GROUP_TILE))
    work, active = np.empty((6, GROUP_TILE)), np.empty(GROUP_TILE, np.bool_)
    point, steps = np.empty(most * GROUP_TILE), np.empty(most * GROUP_TILE)
    for g0 in range(lo, hi, GROUP_TILE):
        g1, size, first = min(g0 + GROUP_TILE, hi), 0, np.uint64(starts[g0])
        members = starts[g1] - starts[g0]
        for j in range(members):
            place = np.uint64(order[first + np.uint64(j)])
            point[j], steps[j] = z[place], step[place]
        for g in range(g0, g1):
            size = max(size, starts[g + 1] - starts[g])
        for g in range(g0, g1):
            t, at, lam, own = g - g0, starts[g] - starts[g0], strength[g], starts[g + 1] - starts[g]
            least = SUBNORMAL if lam > 0.0 else 0.0
            for i in range(own):
                v, s = point[np.uint64(at + i)], steps[np.uint64(at + i)]
                rest = abs(v) - l1 * s
                c[np.uint64(i), np.uint64(t)] = np.copysign(0.0 if rest < 0.0 else rest, v)
                a[np.uint64(i), np.uint64(t)] = max(lam * s, least)
            for i in range(own, size):  # padding that adds nothing
                c[np.uint64(i), np.uint64(t)], a[np.uint64(i), np.uint64(t)] = 0.0, np.inf
        solve_tile(c, a, size, g1 - g0, work, active)
        for g in range(g0, g1):
            at = starts[g] - starts[g0]
            for i in range(starts[g + 1] - starts[g]):
                point[np.uint64(at + i)] = c[np.uint64(i), np.uint64(g - g0)]
        for j in range(members):
            out[np.uint64(order[first + np.uint64(j)])] = point[j]


def group_prox(z: np.ndarray, step: np.ndarray, out: np.ndarray, l1: float, group: GroupL2) -> None:
    """The prox of l1 ||x||_1 plus a GroupL2."""
    parts = group._strength, group._order, group._starts
    most = int(np.diff(group._starts).max())
    if most == 1 or most > SMALL_GROUP:
        by_rows(lambda z, step, x: group_rows(z, step, l1, *parts, x), z, step, out)
        return
    kernel = group_vector if z.ndim == 1 else group_tiles

    def tiles(part: Any, lo: int, hi: int) -> None:
        kernel(z, step, l1, *parts, lo, hi, most, out)

    groups, threads = group._strength.size, thread_count(10 * z.size)
    over_rows(tiles, groups, threads) if threads > 1 else tiles(0, 0, groups)
