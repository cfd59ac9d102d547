"""State dicts: copies and plain data. A state dict that cannot be valid is not loaded."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from .penalties import Penalty, from_config

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer

# Options that tell our optimizers from each other and from those of others.
GROUP_OPTIONS = ("lr", "eps", "penalty", "blocks", "betas")


def saved(content: dict[str, Any]) -> dict[str, Any]:
    """Return a state dict with copies of the tensors, and plain data for penalties."""

    def copy(value: Any) -> Any:
        if isinstance(value, Penalty):
            return value.config()
        return value.clone() if isinstance(value, Tensor) else value

    result: dict[str, Any] = tree_map(copy, content)
    return result


def restore(optimizer: DifferenceOptimizer, content: dict[str, Any]) -> None:
    """Take the buffers in their own precision. PyTorch has cast them to that of the parameters."""
    keys = chain.from_iterable(group["params"] for group in content["param_groups"])
    params = chain.from_iterable(group["params"] for group in optimizer.param_groups)
    for key, p in zip(keys, params, strict=True):
        for name, value in content["state"].get(key, {}).items():
            if isinstance(value, Tensor):
                device = optimizer.state[p][name].device  # a step count may stay on the CPU
                optimizer.state[p][name] = value.detach().to(device=device, copy=True)
    for group in optimizer.param_groups:
        group["penalty"] = from_config(group["penalty"])


def check(optimizer: DifferenceOptimizer, content: dict[str, Any]) -> None:
    """Raise if a state dict is one of another optimizer, or contains invalid numbers."""
    owner, expected = type(optimizer).__name__, {*optimizer.buffers, "step"}
    states = {
        key: content["state"][key]
        for group in content["param_groups"]
        for key in group["params"]
        if content["state"].get(key)
    }
    differ = [
        f"a parameter's state holds {_listing(state)} where {owner} has {_listing(expected)}"
        for state in states.values()
        if set(state) != expected
    ]
    for group in content["param_groups"]:
        names = [name for name in GROUP_OPTIONS if (name in group) != (name in optimizer.defaults)]
        differ += [f"its groups differ in {_listing(names)}"] if names else []
    if differ:
        raise ValueError(
            f"This state_dict is not one of {owner}: {differ[-1]}. Load it into the optimizer that "
            "made it, or start without it."
        )
    for key, state in states.items():
        for name, value in state.items():
            _check_numbers(name, key, torch.as_tensor(value).detach())


def _listing(names: Any) -> str:
    return ", ".join(map(repr, sorted(names)))


def _check_numbers(name: str, key: Any, values: Tensor) -> None:
    """Raise if a buffer contains NaN, or if a sum of squares or a number of steps is negative.

    Infinity is accepted, because the squares of large finite gradients overflow.
    """
    if not values.is_floating_point() and name != "step":
        raise ValueError(
            f"{name!r} of parameter {key!r} in this state_dict has dtype {values.dtype}. It must "
            "be real."
        )
    values = getattr(values, "to_local", lambda: values)().to_dense()  # this process' part
    if values.is_meta or values.numel() == 0:
        return  # there are no numbers
    signed = name not in ("total", "step")
    least = values.min()  # NaN if there is one
    if least.isnan() or (least < 0 and not signed):
        what = "NaN" if signed else "NaN or a negative number"
        raise ValueError(
            f"{name!r} of parameter {key!r} in this state_dict contains {what}. The file is "
            "damaged, or the run that saved it had diverged. Load an earlier one, or start without "
            "it. Nothing was changed."
        )
