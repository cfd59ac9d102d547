"""State dicts: plain data that share nothing, and that are refused if they are another optimizer's."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .penalties import Penalty, from_config

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer

BESIDE_BUFFERS = {"step", "support", "x_prev"}  # what the state of a parameter may hold
ALWAYS = ("lr", "eps", "penalty", "blocks")  # options of ours that every state dict of ours has had


def saved(content: dict[str, Any]) -> dict[str, Any]:
    """A state dict with copies of the tensors, and plain data for penalties."""
    content["state"] = {
        key: {name: _copy(value) for name, value in state.items()}
        if isinstance(state, dict)
        else _copy(state)
        for key, state in content["state"].items()
    }
    for group in content["param_groups"]:
        if isinstance(group["penalty"], Penalty):
            group["penalty"] = group["penalty"].config()
        group["lr"] = _copy(group["lr"])
    return content


@contextmanager
def loading(optimizer: DifferenceOptimizer) -> Iterator[list[dict[str, Any]]]:
    """While PyTorch loads a state dict: what it loads, after everybody else's hooks, is looked at before and kept."""
    content: list[dict[str, Any]] = []

    def look(_: Any, state_dict: dict[str, Any]) -> None:
        refuse_another(optimizer, state_dict)
        check_numbers(optimizer, state_dict)
        content.append(state_dict)

    hook = optimizer.register_load_state_dict_pre_hook(look)
    try:
        yield content
    finally:
        hook.remove()


def restore(optimizer: DifferenceOptimizer, content: dict[str, Any]) -> None:
    """PyTorch has cast the buffers to the dtypes of their parameters: take them as they were."""
    keys = chain.from_iterable(group["params"] for group in content["param_groups"])
    params = chain.from_iterable(group["params"] for group in optimizer.param_groups)
    for key, p in zip(keys, params, strict=True):
        for name, value in content["state"].get(key, {}).items():
            if isinstance(value, Tensor):
                device = optimizer.state[p][name].device  # a step count may stay on the CPU
                optimizer.state[p][name] = value.detach().to(device=device, copy=True)
    for group in optimizer.param_groups:
        group["penalty"] = from_config(group["penalty"])


def refuse_another(optimizer: DifferenceOptimizer, content: dict[str, Any]) -> None:
    """A state dict of another optimizer has other buffers, or groups without our options, or with others."""
    owner, ours = type(optimizer).__name__, {*optimizer.buffers, *BESIDE_BUFFERS}
    for group in content["param_groups"]:
        missing = [name for name in ALWAYS if name not in group]
        if ("betas" in group) != ("betas" in optimizer.defaults):
            missing.append("betas")
        if missing:
            raise ValueError(
                f"This state_dict is not one of {owner}: its groups differ in {', '.join(map(repr, missing))}. Load it "
                "into the optimizer that made it, or begin anew without it."
            )
    params = {key for group in content["param_groups"] for key in group["params"]}
    for key, state in content["state"].items():
        if key in params and not set(optimizer.buffers) <= set(state) <= ours:
            theirs, expected = (
                ", ".join(map(repr, sorted(names))) for names in (state, optimizer.buffers)
            )
            raise ValueError(
                f"This state_dict is not one of {owner}: a parameter's state holds {theirs} where {owner} has {expected}. "
                "Load it into the optimizer that made it, or begin anew without it."
            )


def check_numbers(optimizer: DifferenceOptimizer, content: dict[str, Any]) -> None:
    """Raise if a buffer contains NaN, or if a sum of squares or a number of steps is negative.

    Infinity is accepted, because the squares of large finite gradients overflow. The results are collected on each device and
    fetched together.
    """
    params = {key for group in content["param_groups"] for key in group["params"]}
    flags: dict[Any, list[tuple[Any, str, Tensor]]] = {}
    for key, state in content["state"].items():
        for name in (*optimizer.buffers, "step") if key in params else ():
            values = torch.as_tensor(state.get(name, 0.0)).detach()
            if not values.is_floating_point() and name != "step":
                raise ValueError(
                    f"{name!r} of parameter {key!r} in this state_dict has dtype {values.dtype}. It must be real."
                )
            values = getattr(
                values, "to_local", lambda values=values: values
            )()  # each process checks its own part
            values = values if values.layout is torch.strided else values.to_dense()
            if values.is_meta or hasattr(values, "fake_mode") or values.numel() == 0:
                continue  # there are no numbers
            wrong = (
                ~(values.min() >= 0) if name in ("total", "step") else values.isnan().any()
            )  # the minimum propagates NaN
            flags.setdefault(values.device, []).append((key, name, wrong))
    for found in flags.values():
        for (key, name, _), wrong in zip(
            found, torch.stack([flag for *_, flag in found]).tolist(), strict=True
        ):
            if wrong:
                what = "NaN or a negative number" if name in ("total", "step") else "NaN"
                raise ValueError(
                    f"{name!r} of parameter {key!r} in this state_dict contains {what}. The file is damaged, or the run that "
                    "saved it had diverged. Load an earlier one, or start without it. Nothing was changed."
                )


def mend_steps(state: MutableMapping[Any, Any]) -> None:
    """Counts of steps that are plain numbers become tensors."""
    for entry in state.values():
        if isinstance(entry, dict) and "step" in entry and not isinstance(entry["step"], Tensor):
            entry["step"] = torch.tensor(float(entry["step"]), dtype=torch.float32)


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
