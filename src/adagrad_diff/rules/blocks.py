"""Direct sums: which coordinates of x share one weight of the metric.

The paper's space is X = X_1 + ... + X_d, and the metric has one weight w_i per block X_i. Here a partition is an array
of labels, one per coordinate of x read row by row, or None for blocks of single coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check


def block_labels(blocks: Any, shape: tuple[int, ...], intercept: bool = False) -> np.ndarray | None:
    """Labels 0, 1, ... of the block of every coordinate of an x of the given shape.

    Parameters
    ----------
    blocks : None or "element", "all", "row", or an array of integers
        Single coordinates; one block; the rows of a two-dimensional x; or any partition, as one label per coordinate.
    shape : tuple
        Shape of x, without the trajectory axis.
    intercept : bool
        Whether the last coordinate (or row) of x is an intercept. Labels may then leave it out: it is a block of its own.

    Returns
    -------
    labels : array of int64 or None
        None stands for blocks of single coordinates.

    Examples
    --------
    >>> block_labels([7, 7, 3], (3,)).tolist()
    [1, 1, 0]
    >>> block_labels("row", (2, 3)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    size = int(np.prod(shape))
    if blocks is None or (isinstance(blocks, str) and blocks == "element"):
        return None
    if isinstance(blocks, str):
        if blocks == "all":
            return np.zeros(size, np.int64)
        if blocks == "row" and len(shape) == 2:
            return np.repeat(np.arange(shape[0]), shape[1])
        if blocks == "row":
            raise ValueError(
                f"blocks='row' needs a two-dimensional x. Got x of shape {shape} instead."
            )
    _check.refuse_masked(blocks, "'blocks'")
    try:
        labels = np.asarray(blocks)
    except ValueError:
        labels = np.asarray("ragged")
    if labels.dtype.kind not in "iu":
        raise ValueError(
            "The 'blocks' parameter must be None, 'element', 'all', 'row' or an array of integer labels. "
            f"Got {_check.shown(blocks)} instead."
        )
    rest = (shape[0] - 1, *shape[1:]) if intercept else shape  # without the intercept
    whole, part = (shape, (size,)), (rest, (int(np.prod(rest)),))
    if labels.shape not in whole and not (intercept and labels.shape in part):
        raise ValueError(
            f"'blocks' must hold one label per coordinate: {size} for x of shape {shape}. Got labels of shape {labels.shape}."
        )
    codes = np.unique(labels.ravel(), return_inverse=True)[1].astype(np.int64)
    return np.append(codes, np.full(size - codes.size, codes.max(initial=-1) + 1))
