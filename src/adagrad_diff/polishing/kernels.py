"""Coordinate descent for subproblems: single coordinates, groups, pairs, and columns of a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg.compiling import compiled, plain

MAX_GROUPS_SIZE = 1 << 12  # entries of H up to which Python goes through groups
MAX_PAIRS_SIZE = 1 << 20  # entries of Q up to which NumPy chooses pairs of coordinates


@np.errstate(all="ignore")
def descend(
    H: Any, x: Any, g: Any, l1: Any, l2: Any, lower: Any, upper: Any, steps: int, tol: float
) -> None:
    """Minimize x'Hx/2 - c'x + sum_i l1_i |x_i| + l2_i/2 x_i^2 between bounds, where g = H x - c.

    Each step moves the coordinate with the largest gain: finding it costs no more than updating g.
    The method ends when all gains together are at most tol.
    """
    diagonal = H.diagonal()
    curvature = diagonal + l2
    inverse = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > 0.0)
    for _ in range(steps):
        y = diagonal * x - g
        best = np.copysign(np.maximum(np.abs(y) - l1, 0.0), y) * inverse
        change = np.minimum(np.maximum(best, lower), upper) - x
        gains = change * (2.0 * (best - x) - change) * curvature
        if not np.add.reduce(gains) > tol:
            break
        k = int(gains.argmax())
        x[k] += change[k]
        g += change[k] * H[k]


@compiled(small="python", limit=MAX_GROUPS_SIZE)
def descend_groups(
    H: Any,
    x: Any,
    g: Any,
    l1: Any,
    l2: Any,
    strength: Any,
    order: Any,
    starts: Any,
    bound: Any,
    sweeps: Any,
    tol: Any,
) -> Any:
    """Minimize the same with strength_k ||x_k|| for groups k, members order[starts[k] : starts[k + 1]], and no bounds.

    A group becomes zero where that is optimal. Otherwise
    y = x_k - (g_k + l2 x_k) / bound_k, soft-thresholded by l1 / bound_k;  x_k = y max(1 - strength_k / (bound_k ||y||), 0)

    bound_k is at least the largest eigenvalue of the block of H, plus l2.
    """
    n, moved, y = x.size, np.inf, np.empty(x.size)
    for _ in range(sweeps):
        moved = 0.0
        for k in range(bound.size):
            first, last, square = starts[k], starts[k + 1], 0.0
            if bound[k] <= 0.0:
                continue
            for t in range(first, last):  # the gradient where the group is zero: is that optimal?
                i, total = order[t], g[order[t]]
                for u in range(first, last):
                    total -= H[i, order[u]] * x[order[u]]
                y[t] = max(abs(total) - l1[i], 0.0)
            for t in range(first, last):
                square += y[t] * y[t]
            zero, square = strength[k] > 0.0 and np.sqrt(square) <= strength[k], 0.0
            for t in range(first, last):
                i = order[t]
                point = x[i] - (g[i] + l2[i] * x[i]) / bound[k]
                y[t] = np.copysign(max(abs(point) - l1[i] / bound[k], 0.0), point)
            for t in range(first, last):
                square += y[t] * y[t]
            norm = np.sqrt(square)
            factor = (
                max(1.0 - strength[k] / (bound[k] * norm), 0.0) if norm > 0.0 and not zero else 0.0
            )
            for t in range(first, last):
                i = order[t]
                change = factor * y[t] - x[i]
                if change != 0.0:
                    x[i], row = factor * y[t], H[i]
                    moved += 0.5 * bound[k] * change * change
                    for j in range(n):
                        g[j] += change * row[j]
        if moved <= tol:
            break
    return moved


@compiled(small="python", limit=MAX_PAIRS_SIZE)
def move_pair(Q: Any, x: Any, g: Any, lower: Any, upper: Any, i: Any, j: Any) -> Any:
    """Move x[i] up and x[j] down by the best step between the bounds, and return the step."""
    total = Q[i, i] + Q[j, j]
    curve = max(total - 2.0 * Q[i, j], 1e-12 * total)
    room_i, room_j = upper[i] - x[i], x[j] - lower[j]
    change = (g[j] - g[i]) / curve if curve > 0.0 else np.inf
    new_i, new_j = x[i] + change, x[j] - change
    if change >= min(room_i, room_j):
        if room_i <= room_j:
            change, new_i = room_i, upper[i]
            new_j = lower[j] if room_i == room_j else x[j] - change
        else:
            change, new_j = room_j, lower[j]
            new_i = x[i] + change
    x[i], x[j] = new_i, new_j
    return change


@np.errstate(all="ignore")
def _descend_pairs(Q: Any, x: Any, g: Any, lower: Any, upper: Any, steps: Any, tol: Any) -> Any:
    diagonal, apart = Q.diagonal(), np.inf
    for _ in range(steps):
        rising, falling = np.where(x < upper, g, np.inf), np.where(x > lower, g, -np.inf)
        i = int(rising.argmin())
        total = diagonal[i] + diagonal
        curve = np.maximum(total - 2.0 * Q[i], 1e-12 * total)
        rise = np.maximum(falling - rising[i], 0.0)
        gain = np.where(rise > 0.0, rise * rise / curve, 0.0)
        j, apart = int(gain.argmax()), float(falling.max() - rising[i])
        if not (gain[j] > 0.0 and apart > tol):
            break
        g += move_pair(Q, x, g, lower, upper, i, j) * (Q[i] - Q[j])
    return apart


@compiled(small=_descend_pairs, limit=MAX_PAIRS_SIZE)
def descend_pairs(Q: Any, x: Any, g: Any, lower: Any, upper: Any, steps: Any, tol: Any) -> Any:
    """Minimize x'Qx/2 - c'x between bounds, given sum(x), two coordinates at a time; g = Q x - c.

    One has the least gradient of all that may grow, the other the largest gain together with it, as
    in LIBSVM. The method ends when the gradients of all such pairs differ by less than tol, and
    returns their difference.
    """
    n, apart = x.size, np.inf
    diagonal = np.empty(n)
    for i in range(n):
        diagonal[i] = Q[i, i]
    for _ in range(steps):
        least, i = np.inf, 0
        for k in range(n):
            if x[k] < upper[k] and g[k] < least:
                least, i = g[k], k
        row, best, j, most = Q[i], 0.0, -1, -np.inf
        for k in range(n):
            rise = g[k] - least
            if x[k] > lower[k]:
                most = max(most, g[k])
                if rise > 0.0:
                    curve = max(
                        diagonal[i] + diagonal[k] - 2.0 * row[k],
                        1e-12 * (diagonal[i] + diagonal[k]),
                    )
                    gain = rise * rise / curve if curve > 0.0 else np.inf
                    if gain > best:
                        best, j = gain, k
        apart = most - least
        if j < 0 or not apart > tol:
            break
        change, other = move_pair(Q, x, g, lower, upper, i, j), Q[j]
        for k in range(n):
            g[k] += change * (row[k] - other[k])
    return apart


@plain
def add_sparse_gram(indptr: Any, indices: Any, data: Any, weight: Any, H: Any) -> None:
    """H += np.tril(A.T @ (weight[:, None] * A)) for A in compressed rows with sorted indices"""
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        for p in range(start, stop):
            row, factor = H[np.uint64(indices[np.uint64(p)])], weight[j] * data[np.uint64(p)]
            for q in range(start, p + 1):
                row[np.uint64(indices[np.uint64(q)])] += factor * data[np.uint64(q)]


@compiled
def descend_columns(
    indptr: Any, indices: Any, data: Any, center: Any, h: Any, curve: Any, pulled: Any, x: Any, g: Any, l1: Any, l2: Any,
    lower: Any, upper: Any, sweeps: Any, part: Any,
) -> None:  # fmt: skip
    """Minimize as `descend` for H = (A - center)' diag(h) (A - center), A in compressed columns.

    g is the gradient at x and does not change, curve = np.diag(H), pulled = A.T @ h. A coordinate
    after the columns of A is an intercept. The method ends when the decrease of a sweep is less than
    a part of that of the first one.
    """
    n, columns, first, whole = x.size, indptr.size - 1, 0.0, True
    total, bent, offset = (
        0.0,
        np.zeros(h.size),
        0.0,
    )  # h * (A d), where A d + offset are the changes of predictions
    for j in range(h.size):
        total += h[j]
    pull = 0.0  # sum(bent)
    places, count = np.arange(n), n
    for sweep in range(sweeps):
        moved = 0.0
        for t in range(count):
            i = places[t]
            slope = g[i] + pull + offset * total
            if i < columns:
                dot = 0.0
                for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                    dot += data[p] * bent[np.uint64(indices[p])]
                slope = g[i] + dot + offset * pulled[i] - center[i] * (pull + offset * total)
            full = curve[i] + l2[i]
            y = curve[i] * x[i] - slope
            size = abs(y) - l1[i]
            new = (
                np.copysign(max(size, 0.0), y) / full
                if full > 0.0
                else (0.0 if l1[i] > 0.0 else x[i])
            )
            new = min(max(new, lower[i]), upper[i])
            change = new - x[i]
            if change != 0.0:
                x[i] = new
                moved += 0.5 * full * change * change
                if i < columns:
                    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                        at = np.uint64(indices[p])
                        bent[at] += change * data[p] * h[at]
                    pull += change * pulled[i]
                    offset -= change * center[i]
                else:
                    offset += change
        if sweep == 0:
            first = moved
        if whole:
            if moved <= part * first and sweep > 0:
                break
            count = 0
            for i in range(n):
                if lower[i] < x[i] < upper[i] and (x[i] != 0.0 or l1[i] == 0.0):
                    places[count] = i
                    count += 1
            whole = False
        elif moved <= part * first:
            for i in range(n):
                places[i] = i
            count, whole = n, True
