"""The step for a sparse gradient: only where it, or the previous one, is not zero does anything change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ._dense import dense_step

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer


def check_sparse(g: Tensor, group: dict[str, Any], optimizer: DifferenceOptimizer) -> None:
    """Whether a sparse gradient can be dealt with; it is asked before anything has changed."""
    if not g.is_sparse:
        return
    owner = type(optimizer).__name__
    if not optimizer.takes_sparse:
        raise RuntimeError(f"{owner} does not support sparse gradients")
    if group["reduce"]:
        raise RuntimeError(
            f"{owner} takes sparse gradients only without reduce='storm': its directions are dense."
        )
    if group["penalty"] is not None:
        raise RuntimeError(
            f"{owner} takes sparse gradients only without a penalty: a proximal step changes every entry."
        )
    if group["weight_decay"]:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")


def sparse_step(
    optimizer: DifferenceOptimizer, p: Tensor, g: Tensor, group: dict[str, Any], factor: float
) -> None:
    """As for a dense gradient, entry by entry. The state remembers where the previous one was not zero."""
    state, g = optimizer.ready(p, group), g.coalesce()
    elementwise = group["blocks"] == "element" and not p.is_complex()
    if not elementwise or ("support" not in state and state["prev"].any()):
        dense_step(
            optimizer, p, g.to_dense(), {**group, "donate_grads": False}, factor
        )  # so is the difference
        if elementwise:
            state["support"] = g.indices().clone()  # from now on it is sparse
        return
    support, values, prev = g.indices(), g.values().to(state["prev"].dtype) * factor, state["prev"]
    if "support" in state:  # entries that the previous gradient had and this one has not
        gone = _without(state["support"], support, p.shape)
        state["total"][gone] += prev[gone].square()
        prev[gone] = 0
    (numbers,) = optimizer.numbers([state], group)
    optimizer.sparse(p, tuple(support), values, state, group, *numbers)
    prev[tuple(support)] = values
    state["support"] = support.clone()


def _without(before: Tensor, now: Tensor, shape: torch.Size) -> tuple[Tensor, ...]:
    """The indices in `before` that are not in `now`."""
    sizes = torch.tensor(shape[: len(now)], device=now.device)
    strides = sizes.flip(0).cumprod(0).roll(1)
    strides[0] = 1
    flat = ((indices * strides.flip(0)[:, None]).sum(0) for indices in (before, now))
    return tuple(before[:, ~torch.isin(*flat)])
