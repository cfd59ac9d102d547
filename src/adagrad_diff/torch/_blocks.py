"""Blocks of a tensor that share one weight: entries, rows, or the whole."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCKS = ("element", "row", "tensor")


def inner(ndim: int, blocks: str) -> tuple[int, ...]:
    """The dimensions that a block extends over. A row is what the first dimension counts."""
    return {"element": (), "row": tuple(range(1, ndim)), "tensor": tuple(range(ndim))}[blocks]


def block_sum(x: Tensor, blocks: str) -> Tensor:
    """The sum over each block, in a shape that broadcasts against x."""
    dims = inner(x.ndim, blocks)
    return x.sum(dims, keepdim=True) if dims else x


def block_zeros(x: Tensor, blocks: str, dtype) -> Tensor:
    """Zeros in the shape of `block_sum(x, blocks)`, laid out in memory and over devices like x."""
    return zeros(block_sum(x, blocks), dtype)  # of a DTensor, rows stay where they are


def zeros(x: Tensor, dtype) -> Tensor:
    """Zeros like x, in the same layout."""
    return torch.zeros_like(x, dtype=dtype, memory_format=torch.preserve_format)
