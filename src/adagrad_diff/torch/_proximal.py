"""The proximal step of one tensor in the metric of the optimizer, where the optimizer has seen anything."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._sharded import placed


def proximal_(
    x: Tensor, step: Tensor, total: Tensor, direction: Tensor, group: dict[str, Any]
) -> None:
    """Replace x by its proximal point, but where nothing has accumulated: the length of a step is not known there.

    Such a coordinate keeps its value, and counts in the norm of its group: that is the proximal step in a metric that is
    infinite there. If it moves all the same, since squares have decayed to nothing or are too small to be numbers, it stays in
    bounds; if it does not, even a bound leaves it alone.
    """
    penalty = group["penalty"]
    if penalty is None:
        return
    if group["prox_unseen"]:
        penalty.prox_(x, step)
        return
    unseen = total == 0
    before = x.clone()
    penalty.prox_(x, step.masked_fill(unseen, 0.0))
    x.copy_(placed(torch.where(unseen & (direction == 0), before, x), x))
