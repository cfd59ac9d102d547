"""Minibatches: which samples come next, and the two products with their rows, which stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import compiled, plain

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
LEFT_HALF, THIRTY, TWENTY_SEVEN, THIRTY_ONE = (
    np.uint64(11),
    np.uint64(30),
    np.uint64(27),
    np.uint64(31),
)


@plain
def uniform(seed: Any, n: Any) -> Any:
    """A number in [0, 1) made of seed and n (splitmix64, twice): the same one on every machine, in any order"""
    mixed = np.uint64(0)
    for part in (
        np.uint64(seed),
        np.uint64(n),
    ):  # one after the other: seed ^ n would be the same for many pairs
        mixed = (mixed ^ part) + GOLDEN
        mixed = (mixed ^ (mixed >> THIRTY)) * FIRST_FACTOR
        mixed = (mixed ^ (mixed >> TWENTY_SEVEN)) * SECOND_FACTOR
        mixed = mixed ^ (mixed >> THIRTY_ONE)
    return np.float64(mixed >> LEFT_HALF) * 2.0**-53


@plain
def batch(seed: Any, n: Any, order: Any, rows: Any) -> None:
    """rows = np.take(order, first + np.arange(rows.size), mode="wrap"), where first is uniform in 0 ... order.size - 1"""
    first = np.int64(uniform(seed, n) * order.size)
    for t in range(rows.size):
        place = first + t
        rows[t] = order[place if place < order.size else place - order.size]


@plain
def picked_rows_dot(indptr: Any, indices: Any, data: Any, rows: Any, x: Any, z: Any) -> None:
    """z = A[rows] @ x for A in compressed rows, x (features, columns)"""
    for t in range(rows.size):
        j = rows[t]
        row = z[t]
        row[:] = 0
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            xi, a = x[np.uint64(indices[p])], data[p]
            for k in range(row.size):
                row[k] += a * xi[k]


@plain
def picked_rows_tdot(indptr: Any, indices: Any, data: Any, rows: Any, r: Any, g: Any) -> None:
    """g += A[rows].T @ r for A in compressed rows, r (rows, columns)"""
    for t in range(rows.size):
        j = rows[t]
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            gi, a = g[np.uint64(indices[p])], data[p]
            for k in range(gi.size):
                gi[k] += a * r[t, k]


@compiled
def picked_dense_dot(A: Any, rows: Any, x: Any, z: Any) -> None:
    """z = A[rows] @ x for a dense A, x (features, columns)"""
    for t in range(rows.size):
        a, row = A[rows[t]], z[t]
        if row.size == 1:
            total = z.dtype.type(0)
            for i in range(a.size):
                total += a[i] * x[i, 0]
            row[0] = total
        else:
            row[:] = 0
            for i in range(a.size):
                for k in range(row.size):
                    row[k] += a[i] * x[i, k]


@compiled
def picked_dense_tdot(A: Any, rows: Any, r: Any, g: Any) -> None:
    """g += A[rows].T @ r for a dense A, r (rows, columns)"""
    for t in range(rows.size):
        a, residual = A[rows[t]], r[t]
        for i in range(a.size):
            for k in range(residual.size):
                g[i, k] += a[i] * residual[k]
