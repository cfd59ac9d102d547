"""How many steps a parameter has made: for learning rates and averages that depend on it."""

from __future__ import annotations

from typing import Any

import torch


def count(states: list[dict[str, Any]], group: dict[str, Any]) -> list[Any]:
    """The number of this step, from 1 on, for each of the tensors: plain numbers, or tensors of the device if capturable."""
    for state in states:
        if "step" not in state:
            device = state["prev"].device if group["capturable"] else "cpu"
            state["step"] = torch.zeros((), dtype=torch.float32, device=device)
    steps = [state["step"] for state in states]
    torch._foreach_add_(steps, 1.0)
    if group["capturable"]:
        return steps
    return (
        torch.stack([step.cpu() for step in steps]).tolist()
        if len(steps) > 1
        else [step.item() for step in steps]
    )
