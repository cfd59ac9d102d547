"""Where rules go: the step of the prox and the point it is applied to, one pass over the coordinates of every trajectory.

Arrays of points are (d, B), of blocks (blocks, B), of numbers (B,); `labels` are the blocks of the coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._compile import plain


@plain
def scalar_forward(eta: Any, x: Any, g: Any, step: Any, out: Any) -> None:
    """step = eta;  out = x - step * g"""
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            step[i, k] = eta[k]
            out[i, k] = x[i, k] - step[i, k] * g[i, k]


@plain
def power_forward(total: Any, labels: Any, power: float, eta: Any, x: Any, g: Any, step: Any, out: Any) -> None:
    """step = eta / total[labels]**power;  out = x - step * g"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(x.shape[1]):
            step[i, k] = eta[k] / total[block, k] ** power
            out[i, k] = x[i, k] - step[i, k] * g[i, k]


@plain
def distance_forward(total: Any, far: Any, labels: Any, eps: float, x: Any, g: Any, step: Any, out: Any) -> None:
    """step = far[labels] / (eps + np.sqrt(total[labels]));  out = x - step * g"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(x.shape[1]):
            step[i, k] = far[block, k] / (eps + np.sqrt(total[block, k]))
            out[i, k] = x[i, k] - step[i, k] * g[i, k]


@plain
def delta_forward(total: Any, moved: Any, labels: Any, eps: float, eta: Any, x: Any, g: Any, step: Any, out: Any) -> None:
    """step = eta * np.sqrt(moved[labels] / eta**2 + eps) / np.sqrt(total[labels] + eps);  out = x - step * g"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(x.shape[1]):
            step[i, k] = np.sqrt((moved[block, k] + eps * eta[k] * eta[k]) / (total[block, k] + eps))
            out[i, k] = x[i, k] - step[i, k] * g[i, k]


@plain
def ratio_forward(total: Any, ratios: Any, labels: Any, eps: float, eta: Any, x: Any, g: Any, step: Any, out: Any) -> None:
    """step = eta * np.sqrt(ratios[labels]) / (total[labels] + eps), or eta where ratios are zero;  out = x - step * g"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(x.shape[1]):
            weight = np.sqrt(ratios[block, k]) / (total[block, k] + eps)
            step[i, k] = eta[k] * (weight if ratios[block, k] > 0.0 else 1.0)
            out[i, k] = x[i, k] - step[i, k] * g[i, k]


@plain
def dual_forward(
    total: Any, labels: Any, eps: float, eta: Any, weight: Any, first: Any, pull: Any, step: Any, out: Any
) -> None:
    """w = eps + np.sqrt(total[labels]);  step = weight / w;  out = first - eta * pull / w"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(pull.shape[1]):
            inverse = 1.0 / (eps + np.sqrt(total[block, k]))
            step[i, k] = weight[k] * inverse
            out[i, k] = first[i, k] - eta[k] * pull[i, k] * inverse


@plain
def moment_forward(
    total: Any, labels: Any, eps: Any, eta: Any, fixes: Any, max_move: Any, mean: Any, x: Any, step: Any, out: Any
) -> None:
    """w = eps + np.sqrt(fixes[1] * total[labels]);  step = eta / w;  out = x - step * fixes[0] * mean

    With max_move, the root is at least the norm of fixes[0] * mean over the block, divided by max_move.
    """
    shared = labels.size != total.shape[0]
    if max_move is not None:
        sizes = np.zeros((total.shape[0] if shared else 0, total.shape[1]))
        if shared:
            for i in range(labels.size):
                block = np.uint64(labels[i])
                for k in range(x.shape[1]):
                    sizes[block, k] += np.float64(mean[i, k]) * mean[i, k]
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(x.shape[1]):
            root = np.sqrt(fixes[1, k] * total[block, k])
            direction = fixes[0, k] * mean[i, k]
            if max_move is not None:
                size = fixes[0, k] * np.sqrt(sizes[block, k]) if shared else abs(direction)
                if not size / max_move <= root:  # also where it is NaN
                    root = size / max_move
            step[i, k] = eta[k] / (eps[k] + root)
            out[i, k] = x[i, k] - step[i, k] * direction
