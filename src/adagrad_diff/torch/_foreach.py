"""The step by operations on lists of tensors, and the same compiled: for accelerators, where every operation is a launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._messages import warn
from ._dense import remember
from ._tensors import HALF, PLAIN_TYPES, Pairs, check_shapes

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer

CACHED_PIECE = 1 << 16  # entries that fit into the cache with all their companions


class Foreach:
    """Take plain tensors in the precision of their state: those of accelerators, and if told so those on the CPU."""

    def __init__(self, cpu: bool):
        self.cpu = cpu

    @staticmethod
    def suits(group: dict[str, Any]) -> bool:
        """Whether the options allow it."""
        return bool(group["blocks"] == "element")

    def step(
        self, optimizer: DifferenceOptimizer, pairs: Pairs, group: dict[str, Any], factor: float
    ) -> Pairs:
        rest: Pairs = []
        listed: Pairs = []
        for p, g in pairs:
            (listed if self._takes(p, g, group) else rest).append((p, g))
        for same in _alike(listed):
            self._step_list(optimizer, same, group, factor)
        return rest

    def _takes(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> bool:
        plain = type(p) in PLAIN_TYPES and not p.is_complex() and p.dtype not in HALF
        return (
            plain
            and not g.is_sparse
            and (self.cpu or not p.is_cpu)
            and group["accumulator_dtype"] in (None, p.dtype)
        )

    def _step_list(
        self, optimizer: DifferenceOptimizer, pairs: Pairs, group: dict[str, Any], factor: float
    ) -> None:
        states = [optimizer.ready(p, group) for p, _ in pairs]
        for (p, g), state in zip(pairs, states, strict=True):
            check_shapes(p, g, state)
        xs, given = ([pair[k] for pair in pairs] for k in range(2))
        numbers, decay = optimizer.numbers(states, group), group["weight_decay"]
        gs = given if factor == 1.0 else list(torch._foreach_mul(given, factor))
        if decay and group["decoupled_weight_decay"]:
            torch._foreach_mul_(xs, [1 - row[0] * decay for row in numbers])
        elif decay:
            gs = (
                list(torch._foreach_add(gs, xs, alpha=decay))
                if gs is given
                else _added(gs, xs, decay)
            )
        buffers = [[state[name] for state in states] for name in optimizer.buffers]
        self._update(optimizer, [xs, gs, *buffers], numbers, group)
        for (p, _), g, own, state in zip(pairs, gs, given, states, strict=True):
            remember(p, g, own, state, group)

    def _update(
        self,
        optimizer: DifferenceOptimizer,
        lists: list[list[Tensor]],
        numbers: Any,
        group: dict[str, Any],
    ) -> None:
        penalty = group["penalty"]
        if (
            lists[0][0].is_cpu
            and (penalty is None or penalty.limits() is not None)
            and not torch.compiler.is_compiling()
        ):
            # Piece by piece, so that all operations but the first find the piece in the cache.
            for row, *tensors in zip(numbers, *lists, strict=True):
                contiguous = all(t.is_contiguous() for t in tensors)
                pieces = (
                    [t.view(-1).split(CACHED_PIECE) for t in tensors]
                    if contiguous
                    else [[t] for t in tensors]
                )
                for piece in zip(*pieces, strict=True):
                    optimizer.listed(*([t] for t in piece), numbers=[row], group=group)
        else:
            optimizer.listed(*lists, numbers=numbers, group=group)


class Compiled(Foreach):
    """The same, by a function that `torch.compile` has made of the list operations."""

    def _update(
        self,
        optimizer: DifferenceOptimizer,
        lists: list[list[Tensor]],
        numbers: Any,
        group: dict[str, Any],
    ) -> None:
        compiled(type(optimizer).listed)(*lists, numbers=numbers, group=group)


@cache
def compiled(function: Callable[..., None]) -> Callable[..., None]:
    """`torch.compile(function)`; the function itself if it turns out that this machine cannot compile."""
    chosen = [torch.compile(function)]

    def call(*args: Any, **options: Any) -> None:
        try:
            return chosen[0](*args, **options)
        except (torch._dynamo.exc.TorchDynamoException, ImportError, OSError) as error:
            if chosen[0] is function:
                raise
            warn(f"The step is not compiled, but works: {type(error).__name__}.", RuntimeWarning)
            chosen[0] = function
            return function(*args, **options)

    return call


def _added(gs: list[Tensor], xs: list[Tensor], decay: float) -> list[Tensor]:
    """gs + decay xs, in memory that is ours already."""
    torch._foreach_add_(gs, xs, alpha=decay)
    return gs


def _alike(pairs: Pairs) -> Iterable[Pairs]:
    """The pairs by device and dtype of the parameter."""
    kinds: dict[Any, Pairs] = {}
    for p, g in pairs:
        kinds.setdefault((p.device, p.dtype), []).append((p, g))
    return kinds.values()
