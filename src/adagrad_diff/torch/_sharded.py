"""Tensors that are spread over processes, of which some may have nothing: results in the right place, and the largest entry."""

from __future__ import annotations

from typing import Any

import torch


def placed(value: Any, x: Any) -> Any:
    """The value, spread over processes as x is: an operation in place asks for that, and of one row PyTorch makes copies."""
    places = getattr(x, "placements", None)
    return (
        value
        if places is None or value.placements == places
        else value.redistribute(placements=places)
    )


class Namespace:
    """`torch`, but for `amax`: of nothing there is no largest entry, and PyTorch would ask every process for its own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def amax(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        if not any(
            place.is_shard() and place.dim in axis for place in getattr(x, "placements", ())
        ):
            return torch.amax(x, dim=axis, keepdim=keepdims)
        from torch.distributed.tensor import DTensor, Partial, Replicate

        mine = x.to_local()
        one = [1] * mine.ndim  # a group over processes is the whole tensor
        largest = torch.amax(mine).reshape(one) if mine.numel() else mine.new_full(one, -torch.inf)
        parts = [Partial("max") if place.is_shard() else Replicate() for place in x.placements]
        spread = DTensor.from_local(largest, x.device_mesh, parts, run_check=False)
        return spread.redistribute(placements=[Replicate()] * len(parts))


namespace = Namespace()
