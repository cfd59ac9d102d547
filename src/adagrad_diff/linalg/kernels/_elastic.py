"""Sums of absolute values and squares: the elastic net (as `penalties.six_penalties` states it), and the ridge term of a loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import compiled, plain


def _shrink(z: Any, step: Any, l1: Any, l2: Any, out: Any) -> None:
    size = np.maximum(np.abs(z) - step * _rows(l1, z), 0.0)
    np.copysign(size, z, out=size)
    if l2.size > 1 or l2[0]:
        size /= 1.0 + step * _rows(l2, z)
    out[...] = size


def _rows(strength: Any, x: Any) -> Any:
    """Return one strength for all rows of x, or one for each."""
    return strength[:, None] if x.ndim == 2 else strength


@plain(small=_shrink, elementwise=True)
def shrink(z: Any, step: Any, l1: Any, l2: Any, out: Any) -> None:
    """out = np.sign(z) * np.maximum(np.abs(z) - step * l1, 0) / (1 + step * l2), l1 and l2 of size 1 or one per row"""
    if z.ndim == 1:
        for i in range(z.size):
            lam, mu = l1[i if l1.size > 1 else 0], l2[i if l2.size > 1 else 0]
            size = abs(z[i]) - step[i] * lam
            out[i] = np.copysign(0.0 if size < 0.0 else size, z[i]) / (1.0 + step[i] * mu)
    else:
        for i in range(z.shape[0]):
            lam, mu = l1[i if l1.size > 1 else 0], l2[i if l2.size > 1 else 0]
            if mu == 0.0:  # divisions take most of the time
                for k in range(z.shape[1]):
                    size = abs(z[i, k]) - step[i, k] * lam
                    out[i, k] = np.copysign(0.0 if size < 0.0 else size, z[i, k])
            else:
                for k in range(z.shape[1]):
                    size = abs(z[i, k]) - step[i, k] * lam
                    out[i, k] = np.copysign(0.0 if size < 0.0 else size, z[i, k]) / (
                        1.0 + step[i, k] * mu
                    )


def _elastic_value(x: Any, l1: Any, l2: Any, out: Any) -> None:
    size = np.abs(x).astype(np.float64, copy=False)
    out[...] = l1[0] * np.add.reduce(size) if l1.size == 1 else l1 @ size
    if l2.size > 1 or l2[0]:
        size *= size
        out += 0.5 * (l2[0] * np.add.reduce(size) if l2.size == 1 else l2 @ size)


@compiled(small=_elastic_value)
def elastic_value(x: Any, l1: Any, l2: Any, out: Any) -> None:
    """out = np.sum(l1 * np.abs(x) + l2 / 2 * x**2, axis=0), l1 and l2 of size 1 or one per row"""
    if x.ndim == 1:
        total = 0.0
        for i in range(x.size):
            lam, mu = l1[i if l1.size > 1 else 0], l2[i if l2.size > 1 else 0]
            total += lam * abs(x[i]) + 0.5 * mu * x[i] * x[i]
        out[0] = total
    else:
        out[:] = 0
        for i in range(x.shape[0]):
            lam, mu = l1[i if l1.size > 1 else 0], l2[i if l2.size > 1 else 0]
            for k in range(x.shape[1]):
                out[k] += lam * abs(x[i, k]) + 0.5 * mu * x[i, k] * x[i, k]


def _ridge(x: Any, l2: Any, g: Any, out: Any) -> None:
    np.multiply(x, l2, out=g)
    out += 0.5 * l2 * np.square(x, dtype=np.float64).sum(axis=0)


@compiled(small=_ridge)
def ridge(x: Any, l2: Any, g: Any, out: Any) -> None:
    """g = l2 * x;  out += l2 / 2 * np.sum(x**2, axis=0)"""
    if x.ndim == 1:
        total = 0.0
        for i in range(x.size):
            total += x[i] * x[i]
        for i in range(
            x.size
        ):  # by itself: a loop that adds and writes adds in another order when g lies close behind x
            g[i] = l2 * x[i]
        out[0] += 0.5 * l2 * total
    else:
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[k] += 0.5 * l2 * x[i, k] * x[i, k]
                g[i, k] = l2 * x[i, k]
