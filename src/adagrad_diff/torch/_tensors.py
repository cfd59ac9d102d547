"""Tensors that a step reads and writes: what they must be like, and buffers of zeros beside them."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from ..penalties.group_root import block_sum

HALF = (torch.float16, torch.bfloat16)
PLAIN_TYPES = (Tensor, torch.nn.Parameter)
Pairs: TypeAlias = list[tuple[Tensor, Tensor]]  # parameters and their gradients


def full(x: Tensor, value: float, dtype: torch.dtype) -> Tensor:
    """A buffer like x, in the same layout and spread over devices like it, with the same number everywhere."""
    return torch.full_like(x, value, dtype=dtype, memory_format=torch.preserve_format)


def block_full(x: Tensor, blocks: str, value: float, dtype: torch.dtype) -> Tensor:
    """The same with one entry per block of x: in the shape of `block_sum(x, blocks)`."""
    return full(block_sum(x, blocks), value, dtype)  # of a DTensor, rows stay where they are


def check_shapes(p: Tensor, g: Tensor, state: dict[str, Any]) -> None:
    """The gradient and the buffers are of this parameter, and all of them have memory."""
    shape = torch.view_as_real(p).shape if p.is_complex() else p.shape
    if g.shape != p.shape:
        raise RuntimeError(
            f"A parameter has shape {tuple(p.shape)}, but its gradient has {tuple(g.shape)}: the parameter was replaced after "
            "the backward pass. Compute the gradient again before the step."
        )
    if state["prev"].shape != shape:
        raise RuntimeError(
            f"A parameter has shape {tuple(p.shape)}, but the previous gradient in its state has {tuple(state['prev'].shape)}: "
            "the parameter was replaced. Delete its state, `del optimizer.state[p]`, and it begins anew."
        )
    for t in (p, g, *state.values()):
        if isinstance(t, Tensor) and not has_memory(t):
            raise RuntimeError(
                "The storage of a parameter, of its gradient or of its state is smaller than the tensor: it was freed or "
                "resized. Give it memory again before the step, or set the gradient to None to leave the parameter out."
            )


def check_before(p: Tensor, before: Tensor) -> None:
    """The previous weights are of this parameter."""
    if before.shape != p.shape:
        raise RuntimeError(
            f"A parameter has shape {tuple(p.shape)}, but the previous weights in its state have {tuple(before.shape)}: the "
            "parameter was replaced. Delete its state, `del optimizer.state[p]`, and it begins anew."
        )


def has_memory(t: Tensor) -> bool:
    """Whether the storage of a plain CPU tensor is there; of others PyTorch itself sees it. (On CPUs it would crash.)"""
    if (
        type(t) not in PLAIN_TYPES
        or t.layout is not torch.strided
        or not t.is_cpu
        or t.numel() == 0
        or t._is_zerotensor()
    ):
        return True
    extent = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride(), strict=True)) + 1
    return t.untyped_storage().nbytes() >= (t.storage_offset() + extent) * t.itemsize
