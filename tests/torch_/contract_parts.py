"""Small problems and comparisons that the tests of torch's contract share."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau


class Line:
    """||weight data + bias||^2: what torch's own tests let optimizers go down or up."""

    def __init__(self, *, contiguous: bool = True, seed: int = 0):
        random = torch.Generator().manual_seed(seed)
        weight, bias = (torch.randn(*shape, 2, generator=random) for shape in ((10, 5), (10,)))
        self.data = torch.randn(5, generator=random)
        parts = [t[..., 0].clone() if contiguous else t[..., 0] for t in (weight, bias)]
        self.params = [torch.nn.Parameter(t) for t in parts]

    def loss(self) -> torch.Tensor:
        weight, bias = self.params
        return (weight.mv(self.data) + bias).square().sum()

    def step(self, optimizer: Any) -> torch.Tensor:
        """One step, with the gradient at the current point; the loss before it."""
        optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        optimizer.step()
        return loss.detach()


def rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def rosenbrock_gradient(x: torch.Tensor) -> tuple[float, float]:
    a, b = x.tolist()
    return -400 * a * (b - a**2) - 2 * (1 - a), 200 * (b - a**2)


def advance(schedulers: list[Any], loss: Any) -> None:
    """One step of each scheduler."""
    for scheduler in schedulers:
        scheduler.step(*([loss] if isinstance(scheduler, ReduceLROnPlateau) else []))


def states(optimizer: Any) -> list[dict[str, Any]]:
    """What the optimizer remembers, in the order of the parameters."""
    return [dict(optimizer.state[p]) for p in itertools.chain(*(group["params"] for group in optimizer.param_groups))]


def with_gradients(*shapes: tuple[int, ...], seed: int = 0) -> list[torch.nn.Parameter]:
    """Parameters that have a gradient."""
    random = torch.Generator().manual_seed(seed)
    params = [torch.nn.Parameter(torch.randn(shape, generator=random)) for shape in shapes]
    for p in params:
        p.grad = torch.rand(p.shape, generator=random)
    return params


def repeat_step(optimizer: Any, steps: int = 1) -> None:
    """Steps with the gradients that are there, which an optimizer may take away."""
    gradients = [[p.grad for p in group["params"]] for group in optimizer.param_groups]
    for _ in range(steps):
        for group, saved in zip(optimizer.param_groups, gradients, strict=True):
            for p, g in zip(group["params"], saved, strict=True):
                p.grad = copy.copy(g)
        optimizer.step()
