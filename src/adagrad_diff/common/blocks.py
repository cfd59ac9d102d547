"""Blocks of an array that share one weight or one norm: entries, rows, or the whole. For tensors as for JAX arrays."""

from __future__ import annotations

from typing import Any

BLOCKS = ("element", "row", "tensor")


def inner(ndim: int, blocks: str) -> tuple[int, ...]:
    """The axes that a block extends over. A row is what the first axis counts: of a vector, every entry."""
    return {"element": (), "row": tuple(range(1, ndim)), "tensor": tuple(range(ndim))}[blocks]


def block_sum(x: Any, blocks: str) -> Any:
    """The sum over each block, in a shape that broadcasts against x."""
    axes = inner(x.ndim, blocks)
    return x.sum(axis=axes, keepdims=True) if axes else x


def block_max(xp: Any, x: Any, blocks: str) -> Any:
    """The largest entry of each block, likewise; `xp` is the namespace of the array."""
    axes = inner(x.ndim, blocks)
    return xp.amax(x, axis=axes, keepdims=True) if axes else x
