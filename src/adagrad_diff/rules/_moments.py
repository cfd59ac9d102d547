"""What Adam and its relatives share: averages that begin at zero, corrected for that, and the move along the mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from .memory import Memory, View


def learn_mean(mean: np.ndarray, beta: float, now: View) -> None:
    """mean = beta mean + (1 - beta) g"""
    kernels.average(now.columns(mean)[0], np.full(now.eta.size, 1.0 - beta), now.columns(now.g)[0])


def unbiased(beta: float, now: View) -> Any:
    """1 / (1 - beta^n): an average that began at zero, times this, is one of what it has seen."""
    return 1.0 / (1.0 - beta ** np.atleast_1d(now.n))


def move_along(mean: np.ndarray, fix: Any, memory: Memory, now: View, beta2: float, eps: float, max_move: float | None) -> None:
    """w = eps + sqrt(total / (1 - beta2^n));  step = eta / w;  point = x - step * fix * mean; see `kernels.moment_forward`"""
    fixes = np.empty((2, now.eta.size))
    fixes[0], fixes[1] = fix, unbiased(beta2, now)
    total, mean, x, step, point = now.columns(memory.total, mean, now.x, now.step, now.point)
    kernels.moment_forward(
        total, now.rows, np.full(now.eta.size, eps), now.eta.astype(np.float64), fixes, max_move, mean, x, step, point
    )
