"""The metric of AdaGrad-Diff and its step in one pass, and sums of squares per block."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import compiled, plain


def _add_block_squares(total: Any, labels: Any, g: Any) -> None:
    np.add.at(total, labels, np.square(g, dtype=np.float64))


@plain(small=_add_block_squares)
def add_block_squares(total: Any, labels: Any, g: Any) -> None:
    """np.add.at(total, labels, g**2)"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(g.shape[1]):
            total[block, k] += np.float64(g[i, k]) * g[i, k]


@compiled
def metric_update(
    previous: Any,
    total: Any,
    eps: Any,
    eta: Any,
    scale: Any,
    x: Any,
    g: Any,
    new_total: Any,
    step: Any,
    point: Any,
) -> None:
    """new_total = total + (g - previous)**2;  step = eta * scale[:, None] / (eps + np.sqrt(new_total));  point = x - step * g

    Arrays are (d,) or (d, B), eta is (1,) or (B,), scale is of size 1 or d. `previous` may be None, for zero.
    """
    if total.ndim == 1:
        for i in range(total.size):
            change = g[i] if previous is None else g[i] - previous[i]
            new_total[i] = total[i] + change * change
            step[i] = eta[0] * scale[i if scale.size > 1 else 0] / (eps + np.sqrt(new_total[i]))
            point[i] = x[i] - step[i] * g[i]
    else:
        for i in range(total.shape[0]):
            factor = scale[i if scale.size > 1 else 0]
            for k in range(total.shape[1]):
                change = g[i, k] if previous is None else g[i, k] - previous[i, k]
                new_total[i, k] = total[i, k] + change * change
                step[i, k] = eta[k] * factor / (eps + np.sqrt(new_total[i, k]))
                point[i, k] = x[i, k] - step[i, k] * g[i, k]
