"""Inner loops of minibatch steps with the metric of AdaGrad-Diff, compiled for dense and sparse data.

A step on sparse data costs what the nonzeros of its batch cost. Between two snapshots, a coordinate
that no sample of a batch has keeps its estimate v_i = g_i(y). So its differences are zero, its weight
stays, and its steps are the same proximal step again and again: `repeated_step` makes k of them when
the coordinate is used again. That needs differences: a sum of squared gradients would grow in every
step.
"""

from __future__ import annotations

from math import ceil, copysign, exp, expm1, isnan, log1p
from typing import Any

import numpy as np

from .compiling import plain, scalar_kernel
from .dense import TILE_ROWS, add_rows

SAFE_STEPS = 2.0  # before zero is reached, made one by one because of rounding
# Constants and shifts of splitmix64, a counter-based random number generator (Steele et al. 2014).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SPLITMIX_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
MANTISSA_SHIFT = np.uint64(11)


@plain(small="python")
def uniform(seed: Any, n: Any) -> Any:
    """Return a number in [0, 1) made of seed and n by two rounds of splitmix64, on every machine."""
    mixed = np.uint64(0)
    for part in (np.uint64(seed), np.uint64(n)):  # seed ^ n would be the same for many pairs
        mixed = (mixed ^ part) + GOLDEN
        mixed = (mixed ^ (mixed >> SPLITMIX_SHIFTS[0])) * FIRST_FACTOR
        mixed = (mixed ^ (mixed >> SPLITMIX_SHIFTS[1])) * SECOND_FACTOR
        mixed = mixed ^ (mixed >> SPLITMIX_SHIFTS[2])
    return np.float64(mixed >> MANTISSA_SHIFT) * 2.0**-53


def _batch(seed: Any, n: Any, order: Any, rows: Any) -> None:
    first = int(uniform(seed, n) * order.size)
    rows[:] = np.take(order, first + np.arange(rows.size), mode="wrap")


@plain(small=_batch)
def batch(seed: Any, n: Any, order: Any, rows: Any) -> None:
    """Write batch n into `rows`: a range of `order` from a random place on. The first follows the last."""
    first = np.int64(uniform(seed, n) * order.size)
    for t in range(rows.size):
        place = first + t
        rows[t] = order[place if place < order.size else place - order.size]


@plain
def prox(z: Any, step: Any, l1: Any, l2: Any, low: Any, high: Any) -> Any:
    """Return np.clip(soft(z, step * l1) / (1 + step * l2), low, high), for an elastic net or a box."""
    size = abs(z) - step * l1
    point = copysign(0.0 if size < 0.0 else size, z) / (1.0 + step * l2)
    return min(max(point, low), high)


@plain
def repeated_step(
    x: Any, steps: Any, step: Any, g: Any, l1: Any, l2: Any, low: Any, high: Any
) -> Any:
    """for _ in range(steps): x = prox(x - step * g, step, l1, l2, low, high)"""
    if l1 == 0.0 and l2 == 0.0:  # in one direction, up to a bound
        return min(max(x - steps * (step * g), low), high)
    while steps > 0:
        before = x
        x = prox(x - step * g, step, l1, l2, low, high)
        steps -= 1
        if x == before or isnan(x):
            return x
        if x * before <= 0.0 or steps == 0:
            continue
        # On one side of zero |x| <- (|x| - drift) / (1 + step * l2), as long as that is positive.
        size, drift, many = abs(x), step * (l1 + (g if x > 0.0 else -g)), float(steps)
        rate = log1p(step * l2)
        if drift > 0.0 and rate > 0.0:
            many = min(many, log1p(size * step * l2 / drift) / rate - SAFE_STEPS)
        elif drift > 0.0:
            many = min(many, ceil(size / drift) - SAFE_STEPS)
        if many >= 1.0:
            many = float(int(many))
            if rate > 0.0:
                size = size * exp(-many * rate) + drift / (step * l2) * expm1(-many * rate)
            else:
                size -= many * drift
            x, steps = copysign(size, x), steps - int(many)
    return x


# The quantities of a coordinate are neighbors in memory: the coordinates of a batch are in no order, and
# each would cost a cache line per array. `done` counts the steps it has made, and `kind` is the first
# coordinate if the penalty is the same there.
COORDINATE = np.dtype(
    [(name, np.float64) for name in ("x", "v", "total", "base", "change", "factor")]
    + [("done", int), ("kind", int)]
)


@plain
def _settle(at: Any, k: Any, eps: Any, terms: Any) -> None:
    """Make the first k steps of a coordinate: one with its last estimate, and the others with its base."""
    kind = np.uint64(at.kind)
    l1, l2, low, high = terms[0][kind], terms[1][kind], terms[2][kind], terms[3][kind]
    if at.done < k:
        step = at.factor / (eps + np.sqrt(at.total))
        at.x = prox(at.x - step * at.v, step, l1, l2, low, high)
        at.done += 1
    if at.done < k:
        if at.v != at.base:
            at.total += (at.base - at.v) ** 2
            at.v = at.base
        step = at.factor / (eps + np.sqrt(at.total))
        at.x = repeated_step(at.x, k - at.done, step, at.v, l1, l2, low, high)
        at.done = k


@scalar_kernel
def sparse_inner_loop(scalar: Any, residuals: Any) -> Any:
    def kernel(
        A: Any,
        samples: Any,
        batches: Any,
        x: Any,
        v: Any,
        total: Any,
        snapshot: Any,
        metric: Any,
        terms: Any,
        steps: Any,
    ) -> None:
        """Make steps of AdaGrad-Diff, each followed by an estimate at the new point, for A in CSR:

        x = prox(x - step * v);  v_new = base + N / size * A[rows].T @ (r(x) - held)[rows];  total += (v_new - v)**2

        The intercept, if there is one, is the last coordinate of x. If columns are centered or the
        loss has a ridge term, all coordinates take part in every step.
        """
        (indptr, indices, data), (b, weight, theta, intercept, center, ridge) = A, samples
        (seed, first, order, rows), (base, held, y), (eta, eps, scale), (l1, l2, low, high) = (
            batches,
            snapshot,
            metric,
            terms,
        )
        features, weighted, everything = (
            x.size - intercept,
            order.size / rows.size,
            center.size > 0 or ridge > 0.0,
        )
        places, touched = np.empty(x.size, COORDINATE), np.empty(x.size, np.int64)
        for i in range(x.size):
            at = places[i]
            at.x, at.v, at.total, at.base, at.change = x[i], v[i], total[i], base[i], 0.0
            at.factor, at.done = eta * scale[i if scale.size > 1 else 0], 0
            same = l1[i] == l1[0] and l2[i] == l2[0] and low[i] == low[0] and high[i] == high[0]
            at.kind = 0 if same else i
        for k in range(1, steps + 1):
            batch(seed, first + k, order, rows)
            count = 0
            if everything:
                for t in range(x.size):
                    _settle(places[t], k, eps, terms)
                    touched[t] = t
                count = x.size
            elif intercept:
                _settle(places[features], k, eps, terms)
                touched[0], count = features, 1
            offset = places[features].x if intercept else 0.0
            for t in range(center.size):
                offset -= np.float64(center[t]) * places[t].x
            added = 0.0
            for t in range(rows.size):
                j = rows[t]
                start, stop, z = np.uint64(indptr[j]), np.uint64(indptr[j + 1]), offset
                for p in range(start, stop):
                    at = places[np.uint64(indices[p])]
                    if at.done < k:
                        _settle(at, k, eps, terms)
                        touched[count] = indices[p]
                        count += 1
                    z += data[p] * at.x
                if weight[j] != 0.0:
                    r = weighted * (weight[j] * scalar(z, b[j], theta)[1] - held[j])
                    added += r
                    for p in range(start, stop):
                        places[np.uint64(indices[p])].change += data[p] * r
            if intercept:
                places[features].change = added
                for t in range(center.size):
                    places[t].change -= center[t] * added
            for t in range(count):
                at = places[np.uint64(touched[t])]
                new = at.base + at.change
                if touched[t] < features:
                    new += ridge * (at.x - y[np.uint64(touched[t])])
                at.total += (new - at.v) ** 2
                at.v, at.change = new, 0.0
        for i in range(x.size):
            at = places[i]
            if at.done < steps:
                _settle(at, steps, eps, terms)
                at.total += (at.base - at.v) ** 2
                at.v = at.base
            x[i], v[i], total[i] = at.x, at.v, at.total

    return kernel


@scalar_kernel
def dense_inner_loop(scalar: Any, residuals: Any) -> Any:
    def kernel(
        A: Any,
        samples: Any,
        batches: Any,
        x: Any,
        v: Any,
        total: Any,
        snapshot: Any,
        metric: Any,
        terms: Any,
        steps: Any,
    ) -> None:
        """Make the same steps for a dense A, whose batches have all coordinates."""
        (
            (b, weight, theta, intercept, center, ridge),
            (seed, first, order, rows),
            (base, held, y),
        ) = samples, batches, snapshot
        (eta, eps, scale), (l1, l2, low, high) = metric, terms
        features, factor = A.shape[1], order.size / rows.size
        change, r = np.zeros(x.size, x.dtype), np.empty(TILE_ROWS, x.dtype)
        for k in range(1, steps + 1):
            batch(seed, first + k, order, rows)
            for i in range(x.size):
                step = eta * scale[i if scale.size > 1 else 0] / (eps + np.sqrt(total[i]))
                x[i] = prox(x[i] - step * v[i], step, l1[i], l2[i], low[i], high[i])
                change[i] = 0.0
            offset = np.float64(x[features]) if intercept else 0.0
            for i in range(center.size):
                offset -= np.float64(center[i]) * x[i]
            added = 0.0
            for start in range(
                0, rows.size, TILE_ROWS
            ):  # scattered rows are used twice in the cache
                tile = rows[start : start + TILE_ROWS]
                for t in range(tile.size):
                    j = tile[t]
                    a, z = A[j], x.dtype.type(offset)
                    for i in range(features):
                        z += a[i] * x[i]
                    r[t] = (
                        factor * (weight[j] * scalar(z, b[j], theta)[1] - held[j])
                        if weight[j] != 0.0
                        else 0.0
                    )
                    added += r[t]
                add_rows(A, tile, r[: tile.size], change)
            if intercept:
                change[features] = added
                for i in range(center.size):
                    change[i] -= center[i] * added
            for i in range(x.size):
                new = base[i] + change[i]
                if i < features:
                    new += ridge * (x[i] - y[i])
                total[i] += (np.float64(new) - v[i]) ** 2
                v[i] = new

    return kernel
