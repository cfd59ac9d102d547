"""What belongs to the samples of a linear model, and stays with their rows of A."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from . import kernels


@dataclass(frozen=True)
class Samples:
    """Targets b, weights and, after a pass over A, the residuals r = weight * l'(z, b) of the samples."""

    b: np.ndarray
    weight: np.ndarray
    batch: tuple[int, ...]  # (), or how many numbers are predicted for a sample: one per trajectory
    theta: float  # of the scalar loss
    scalar: Any  # l(z, b, theta) -> (value, derivative); None if the loss of a sample is not that of one number
    intercept: bool  # whether something is added to predictions
    r: np.ndarray = field(
        default_factory=lambda: np.empty(0)
    )  # (samples, *batch), once there is memory for them

    @property
    def width(self) -> int:
        """How many numbers are predicted for a sample."""
        return prod(self.batch)

    def with_memory(self) -> Samples:
        """The same, with memory for residuals."""
        return replace(self, r=np.empty((len(self.b), *self.batch), self.weight.dtype))

    def part(self, lo: int, hi: int) -> Samples:
        """Those of a block; residuals are written through to ours."""
        return replace(self, b=self.b[lo:hi], weight=self.weight[lo:hi], r=self.r[lo:hi])

    def residuals(self) -> Callable[[int, int, np.ndarray], None]:
        """(lo, hi, value) -> r[lo:hi], the predictions there, become residuals; value += their loss"""
        kernel = kernels.residuals(self.scalar)
        return lambda lo, hi, value: kernel(self.r, self.b, self.weight, self.theta, lo, hi, value)
