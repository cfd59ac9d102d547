"""Buffers of zeros, with one entry per block of a tensor or one per entry."""

from __future__ import annotations

import torch
from torch import Tensor

from ..common.blocks import block_sum


def block_zeros(x: Tensor, blocks: str, dtype: torch.dtype) -> Tensor:
    """Zeros in the shape of `block_sum(x, blocks)`, laid out in memory and over devices like x."""
    return zeros(block_sum(x, blocks), dtype)  # of a DTensor, rows stay where they are


def zeros(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Zeros like x, in the same layout."""
    return torch.zeros_like(x, dtype=dtype, memory_format=torch.preserve_format)
