"""Where A'(w u) may be, coordinate by coordinate, for the conjugate of a penalty to be finite: what a correction aims at.

Nothing is proven by these numbers: whether a point is feasible is asked of the penalty in the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..penalties import Box, ElasticNet, GroupL2, Penalty, Scaled, Separable, SparseGroupL2, Zero


def limits(penalty: Penalty, l2: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(smallest, largest) value of each coordinate of A'(w u); no limits where they are not intervals, or not known."""
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    if l2 > 0:
        return low, high
    if isinstance(penalty, ElasticNet):
        flat = np.broadcast_to(penalty.l2 == 0, size)
        high = np.where(flat, penalty.l1, np.inf)
        low = -high
    elif isinstance(penalty, Zero):
        low, high = np.zeros(size), np.zeros(size)
    elif isinstance(penalty, Box):
        low = np.where(np.broadcast_to(penalty.upper == np.inf, size), 0.0, -np.inf)
        high = np.where(np.broadcast_to(penalty.lower == -np.inf, size), 0.0, np.inf)
    elif isinstance(penalty, Scaled) and "set" not in penalty.properties:
        low, high = (penalty.factor * end for end in limits(penalty.penalty, l2, size))
    elif isinstance(penalty, Separable):
        _, pairs, rest = penalty.plan(size)
        low[rest] = high[rest] = 0.0
        for where, part in pairs:
            low[where], high[where] = limits(part, l2, low[where].size)
    elif isinstance(penalty, SparseGroupL2) and penalty.l2 == 0:
        low, high = np.full(size, -penalty.l1), np.full(size, penalty.l1)
    elif isinstance(penalty, GroupL2):
        free = group_strengths(penalty)[_labels(penalty)] == 0
        low[free] = high[free] = 0.0
    return low, high


def group_strengths(penalty: Any) -> np.ndarray:
    """One per group, in the order of the labels."""
    count = np.unique(penalty.groups).size
    if isinstance(penalty, SparseGroupL2):
        return np.full(count, penalty.l2)
    return np.asarray(
        penalty.lam * (np.ones(count) if penalty.weights is None else penalty.weights), np.float64
    )


def _labels(penalty: Any) -> np.ndarray:
    return np.asarray(np.unique(penalty.groups, return_inverse=True)[1])


def shrunk_groups(penalty: Any, v: np.ndarray, inside: float) -> np.ndarray:
    """v with the groups that are too large scaled into the domain of the conjugate, by a little more than they need."""
    target, labels = v.copy(), _labels(penalty)
    l1 = penalty.l1 if isinstance(penalty, SparseGroupL2) else 0.0
    excess = np.maximum(np.abs(v) - l1, 0.0)
    norms = np.sqrt(np.bincount(labels, excess**2))
    strengths = group_strengths(penalty)
    for g in np.flatnonzero((norms > strengths * (1.0 - inside)) & (strengths + l1 > 0)):
        own = labels == g
        target[own] *= (1.0 - 2.0 * inside) / float(penalty.polar(np.where(own, v, 0.0)))
    return target
