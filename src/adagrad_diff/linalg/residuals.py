"""The samples of a linear model, and how their predictions become residuals and a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from .compiling import is_small, plain, scalar_kernel
from .elementary import takes_arrays

TILE_SAMPLES = 64  # samples of one trajectory that are gathered into a vector
WIDE_ROW = 8  # trajectories from which on the row of a sample is vector enough


@dataclass(frozen=True)
class Samples:
    """Targets b, weights and, after a pass over A, the residuals r = weight * l'(z, b) of samples."""

    b: np.ndarray
    weight: np.ndarray
    batch: tuple[int, ...]  # shape of the predictions for one sample: () or (trajectories,)
    theta: float  # parameter of the scalar loss
    scalar: Any  # l(z, b, theta) -> (value, derivative); None for losses of several scores
    intercept: bool  # whether an offset is added to predictions
    r: np.ndarray = field(default_factory=lambda: np.empty(0))  # (samples, *batch) if allocated

    @property
    def width(self) -> int:
        """The number of predictions for one sample."""
        return prod(self.batch)

    def with_memory(self) -> Samples:
        """Return the same samples with memory for residuals."""
        return replace(self, r=np.empty((len(self.b), *self.batch), self.weight.dtype))

    def part(self, lo: int, hi: int) -> Samples:
        """Return the samples of a block. Their residuals are views."""
        return replace(self, b=self.b[lo:hi], weight=self.weight[lo:hi], r=self.r[lo:hi])

    def residuals(self) -> Callable[[int, int, np.ndarray], None]:
        """Return a function (lo, hi, value): predictions r[lo:hi] become residuals, value += loss."""
        kernel = residuals(self.scalar)
        return lambda lo, hi, value: kernel(self.r, self.b, self.weight, self.theta, lo, hi, value)


def residuals(scalar: Any) -> Any:
    """Return the function (z, b, weight, theta, lo, hi, out) that makes residuals of predictions.

    out += np.sum(weight * value(z, b), axis=0);  z <- weight * derivative(z, b);  both for samples
    lo..hi, where samples of weight zero count as zero.
    """
    arrays = takes_arrays(scalar)

    def function(z: Any, b: Any, weight: Any, theta: Any, lo: Any, hi: Any, out: Any) -> None:
        if arrays and is_small(z.size):
            _numpy_residuals(scalar, z[lo:hi], b[lo:hi], weight[lo:hi], theta, out)
        else:
            compiled_residuals(scalar)(z, b, weight, theta, lo, hi, out)

    return function


@np.errstate(all="ignore")  # an overflow shows in the value
def _numpy_residuals(scalar: Any, z: Any, b: Any, weight: Any, theta: float, out: Any) -> None:
    if z.ndim == 2:
        b, weight = b[:, None], weight[:, None]
    value, derivative = scalar(z.astype(np.float64, copy=False), b, theta)
    value, derivative = weight * value, weight * derivative
    if not weight.all():  # they may be infinite there
        value, derivative = (np.where(weight == 0, 0.0, a) for a in (value, derivative))
    out += np.add.reduce(value)
    z[...] = derivative


@scalar_kernel
def compiled_residuals(scalar: Any, column_residuals: Any) -> Any:
    def kernel(z: Any, b: Any, weight: Any, theta: Any, lo: Any, hi: Any, out: Any) -> None:
        if z.ndim == 1:
            out[0] += column_residuals(z[lo:hi], b[lo:hi], weight[lo:hi], theta)
        elif z.shape[1] < WIDE_ROW:
            column = np.empty(TILE_SAMPLES, z.dtype)
            for first in range(lo, hi, TILE_SAMPLES):
                last = min(first + TILE_SAMPLES, hi)
                tile = z[first:last]
                for k in range(z.shape[1]):
                    for t in range(last - first):
                        column[t] = tile[t, k]
                    out[k] += column_residuals(
                        column[: last - first], b[first:last], weight[first:last], theta
                    )
                    for t in range(last - first):
                        tile[t, k] = column[t]
        else:
            for j in range(lo, hi):
                for k in range(z.shape[1]):
                    value, derivative = scalar(z[j, k], b[j], theta)
                    out[k] += weight[j] * value if weight[j] != 0.0 else 0.0
                    z[j, k] = weight[j] * derivative if weight[j] != 0.0 else 0.0

    return kernel


def _softmax_residuals(z: Any, b: Any, weight: Any, lo: Any, hi: Any, out: Any) -> None:
    part, labels, w = z[lo:hi], b[lo:hi], weight[lo:hi, None].astype(np.float64)
    samples = np.arange(len(part))
    top = part.max(axis=1)
    score = part[samples, labels]
    size = np.exp(part - top[:, None])
    total = size.sum(axis=1, dtype=np.float64)
    losses = np.where(w == 0, 0.0, w * (np.log(total) + (top - score)))
    out[: losses.shape[1]] += losses.sum(axis=0)
    size *= np.where(w == 0, 0.0, w / total)[:, None]
    size[samples, labels] -= w
    part[...] = np.where(w[:, None] == 0, 0.0, size)


@plain(small=_softmax_residuals)
def softmax_residuals(z: Any, b: Any, weight: Any, lo: Any, hi: Any, out: Any) -> None:
    """z (samples, classes, trajectories) <- weight * (softmax(z) - onehot(b)) for samples lo..hi;  out += their loss.

    Samples of weight zero have residuals zero.
    """
    for j in range(lo, hi):
        if weight[j] == 0.0:  # also where a score is infinite
            z[j] = 0.0
            continue
        for k in range(z.shape[2]):
            top = z[j, 0, k]
            for c in range(1, z.shape[1]):
                top = max(top, z[j, c, k])
            score, total = z[j, b[j], k], 0.0
            for c in range(z.shape[1]):
                z[j, c, k] = np.exp(z[j, c, k] - top)
                total += z[j, c, k]
            out[k] += weight[j] * (np.log(total) + (top - score))
            for c in range(z.shape[1]):
                z[j, c, k] *= weight[j] / total
            z[j, b[j], k] -= weight[j]
