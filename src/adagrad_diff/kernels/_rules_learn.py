"""What rules take in of a gradient: averages, distances and sums over coordinates, of every trajectory.

Arrays of points are (d, B), of blocks (blocks, B), of numbers (B,); `labels` are the blocks of the coordinates. Sums keep the
order of the coordinates, so a trajectory is the same, bit for bit, alone and among others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._compile import plain


@plain
def average_squares(total: Any, labels: Any, beta: float, g: Any, g_prev: Any) -> None:
    """total = beta * total + (1 - beta) * sums of (g - g_prev)**2 over blocks; without g_prev, of g**2"""
    for j in range(total.shape[0]):
        for k in range(total.shape[1]):
            total[j, k] *= beta
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(g.shape[1]):
            change = np.float64(g[i, k])
            if g_prev is not None:
                change -= g_prev[i, k]
            total[block, k] += (1.0 - beta) * (change * change)


@plain
def average(mean: Any, weight: Any, x: Any) -> None:
    """mean = (1 - weight) * mean + weight * x, with one weight per trajectory"""
    for i in range(mean.shape[0]):
        for k in range(mean.shape[1]):
            mean[i, k] = (1.0 - weight[k]) * mean[i, k] + weight[k] * x[i, k]


@plain
def keep_distances(far: Any, labels: Any, x: Any, first: Any) -> None:
    """far = np.maximum(far, norms of x - first over blocks)"""
    squares = np.zeros(far.shape)
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(far.shape[1]):
            move = x[i, k] - first[i, k]
            squares[block, k] += move * move
    for j in range(far.shape[0]):
        for k in range(far.shape[1]):
            distance = np.sqrt(squares[j, k])
            if not distance <= far[j, k]:  # also where it is NaN
                far[j, k] = distance


@plain
def add_weighted(pull: Any, weight: Any, g: Any) -> None:
    """pull += weight * g, with one weight per trajectory"""
    for i in range(pull.shape[0]):
        for k in range(pull.shape[1]):
            pull[i, k] += weight[k] * g[i, k]


@plain
def add_quotients(total: Any, ratios: Any, labels: Any, eps: float, delta: float, g: Any) -> None:
    """new = sums of g**2 over blocks;  total += new;  ratios += delta * new + new / (total + eps)"""
    if labels.size == total.shape[0]:
        for i in range(labels.size):
            block = np.uint64(labels[i])
            for k in range(g.shape[1]):
                new = np.float64(g[i, k]) * g[i, k]
                total[block, k] += new
                ratios[block, k] += delta * new + new / (total[block, k] + eps)
        return
    fresh = np.zeros(total.shape)
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(g.shape[1]):
            fresh[block, k] += np.float64(g[i, k]) * g[i, k]
    for j in range(total.shape[0]):
        for k in range(total.shape[1]):
            total[j, k] += fresh[j, k]
            ratios[j, k] += delta * fresh[j, k] + fresh[j, k] / (total[j, k] + eps)


@plain
def adapt_distance(total: Any, eps: float, d: Any, pull: Any, g: Any, out: Any) -> None:
    """total += g**2;  pull += d * g;  w = eps + np.sqrt(total);  out = sums of pull**2 / w, g**2 / w and abs(pull)"""
    out[:] = 0.0
    for i in range(g.shape[0]):
        for k in range(g.shape[1]):
            square = np.float64(g[i, k]) * g[i, k]
            total[i, k] += square
            pull[i, k] += d[k] * g[i, k]
            weight = eps + np.sqrt(total[i, k])
            out[0, k] += pull[i, k] * pull[i, k] / weight
            out[1, k] += square / weight
            out[2, k] += abs(pull[i, k])


@plain
def learn_prodigy(
    mean: Any, total: Any, pull: Any, betas: Any, d: Any, gain: Any, x: Any, first: Any, g: Any, out: Any
) -> None:
    """Averages of d g, (d g)**2 and gain g, the last one without a factor 1 - beta; out = sums of g * (first - x) and abs(pull)

    mean = b1 * mean + (1 - b1) * d * g;  total = b2 * total + (1 - b2) * (d * g)**2;  pull = b3 * pull + gain * g
    """
    b1, b2, b3 = betas
    out[:] = 0.0
    for i in range(g.shape[0]):
        for k in range(g.shape[1]):
            scaled = d[k] * g[i, k]
            mean[i, k] = b1 * mean[i, k] + (1.0 - b1) * scaled
            total[i, k] = b2 * total[i, k] + (1.0 - b2) * (scaled * scaled)
            pull[i, k] = b3 * pull[i, k] + gain[k] * g[i, k]
            out[0, k] += g[i, k] * (first[i, k] - x[i, k])
            out[1, k] += abs(pull[i, k])


@plain
def inner_products(x: Any, y: Any, u: Any, v: Any, out: Any) -> None:
    """a = x - y;  b = u - v;  out = np.sum(a * b, axis=0), np.sum(a * a, axis=0), np.sum(b * b, axis=0)"""
    out[:] = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            a, b = np.float64(x[i, k]) - y[i, k], np.float64(u[i, k]) - v[i, k]
            out[0, k] += a * b
            out[1, k] += a * a
            out[2, k] += b * b
