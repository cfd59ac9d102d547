"""The step of one tensor with a dense gradient: the statement that all other ways are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ._tensors import check_shapes

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer


def dense_step(
    optimizer: DifferenceOptimizer, p: Tensor, g: Tensor, group: dict[str, Any], factor: float
) -> None:
    """In the precision of the state; a complex entry is two real ones."""
    state = optimizer.ready(p, group)
    check_shapes(p, g, state)
    (numbers,) = optimizer.numbers([state], group)
    x, given, dtype, decay = p, g, state["prev"].dtype, group["weight_decay"]
    if p.is_complex():
        x, g = torch.view_as_real(p), torch.view_as_real(g.resolve_conj())
    g = g.to(dtype)
    g = g if factor == 1.0 else g * factor
    wide = x if x.dtype == dtype else x.to(dtype)
    if decay and group["decoupled_weight_decay"]:
        wide.mul_(1 - numbers[0] * decay)
    elif decay:
        g = g + decay * wide
    optimizer.single(wide, g, state, group, *numbers)
    if wide is not x:
        x.copy_(wide)
    remember(p, g, given, state, group)


def remember(
    p: Tensor, g: Tensor, given: Tensor, state: dict[str, Any], group: dict[str, Any]
) -> None:
    """prev = g: a copy, or the given gradient's own memory if we may have it."""
    state.pop("support", None)  # where the previous gradient was not zero, if it was sparse
    if group["donate_grads"] and g is given:
        state["prev"], p.grad = g.detach(), None
    else:
        state["prev"].copy_(g)
