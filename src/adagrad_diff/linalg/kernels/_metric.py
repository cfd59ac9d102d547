"""Sums of squares per block."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import plain


def _add_block_squares(total: Any, labels: Any, g: Any) -> None:
    np.add.at(total, labels, np.square(g, dtype=np.float64))


@plain(small=_add_block_squares)
def add_block_squares(total: Any, labels: Any, g: Any) -> None:
    """np.add.at(total, labels, g**2)"""
    for i in range(labels.size):
        block = np.uint64(labels[i])
        for k in range(g.shape[1]):
            total[block, k] += np.float64(g[i, k]) * g[i, k]
