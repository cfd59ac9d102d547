"""The fused step on CPUs: one compiled pass over parameters, gradients and buffers, in threads over all tensors together.

The kernels find tensors by their addresses. A tensor may get other memory at any time (`p.data = ...`, `share_memory_()`, a
trip to another process), so every address is asked for anew at every step, and nothing of it is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from ..common.threads import thread_count
from ._kernels import COUPLED, DECOUPLED, FULL_PROX, NO_DECAY, NO_PROX, SHRINK_ONLY, Kind, kernel
from ._team import over_team
from ._tensors import PLAIN_TYPES, Pairs

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer

FUSED_DTYPES: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}


class Fused:
    """Take the parameters that are plain CPU arrays, as their gradients and buffers are."""

    @staticmethod
    def suits(group: dict[str, Any]) -> bool:
        """Whether the options allow it."""
        return (
            not (group["capturable"] or group["donate_grads"])
            and group["blocks"] == "element"
            and (group["penalty"] is None or group["penalty"].limits() is not None)
            and not isinstance(group["lr"], Tensor)
            and not torch.compiler.is_compiling()
            and not numba.config.DISABLE_JIT  # type: ignore[attr-defined, unused-ignore]
        )

    def step(self, optimizer: DifferenceOptimizer, pairs: Pairs, group: dict[str, Any], factor: float) -> Pairs:
        rest: Pairs = []
        work: dict[torch.dtype, tuple[list[Tensor], list[dict[str, Any]], list[int], list[list[int]]]] = {}
        for p, g in pairs:
            state, dtype, size = optimizer.ready(p, group), p.dtype, p.numel()
            tensors = (p, g, *[state[name] for name in optimizer.buffers])
            addresses = [address(t, dtype, size) for t in tensors] if dtype in FUSED_DTYPES else [0]
            if 0 in addresses:
                rest.append((p, g))
                continue
            state.pop("support", None)  # where the previous gradient was not zero, if it was sparse
            params, states, sizes, table = work.setdefault(dtype, ([], [], [], []))
            params.append(p)
            states.append(state)
            sizes.append(size)
            table.append(addresses)
        for dtype, (params, states, sizes, table) in work.items():
            increment_version(params)  # autograd is told before anything is written: a backward through the old values raises
            self._run(optimizer, states, np.array(table, np.uint64), sizes, group, factor, FUSED_DTYPES[dtype])
        return rest

    @staticmethod
    def _run(
        optimizer: DifferenceOptimizer,
        states: list[dict[str, Any]],
        table: np.ndarray,
        sizes: list[int],
        group: dict[str, Any],
        factor: float,
        dtype: Any,
    ) -> None:
        """Update the tensors whose addresses are the columns of the table: parameter, gradient, buffers."""
        limits = None if group["penalty"] is None else group["penalty"].limits()
        prox = NO_PROX if limits is None else SHRINK_ONLY if limits[1:] == (0.0, -np.inf, np.inf) else FULL_PROX
        decay = group["weight_decay"]
        weights = NO_DECAY if decay == 0 else DECOUPLED if group["decoupled_weight_decay"] else COUPLED
        update = kernel(optimizer.kernel, dtype, Kind(prox, weights, group["prox_unseen"]))
        numbers = np.array(optimizer.numbers(states, group), dtype)
        scalars = tuple(map(dtype, (factor, decay, *optimizer.scalars(group))))
        penalty = tuple(map(dtype, (*(limits or (0.0,) * 4), 0.0, 1.0)))
        starts = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        threads = min(thread_count(starts[-1]), torch.get_num_threads())
        if threads > 1 and overlapping(table, np.diff(starts) * np.dtype(dtype).itemsize):
            threads = 1  # one after the other, in their order
        addresses = np.zeros((len(table), 5), np.uint64)
        addresses[:, : table.shape[1]] = table
        over_team(lambda part, lo, hi: update(addresses, starts, numbers, scalars, penalty, lo, hi), int(starts[-1]), threads)


def address(t: Any, dtype: torch.dtype, size: int) -> int:
    """Where a tensor's numbers lie, if it is a plain array of `size` of them; 0 if it is anything else, or empty."""
    if (
        type(t) in PLAIN_TYPES
        and t.layout is torch.strided
        and t.dtype is dtype
        and t.is_cpu
        and t.numel() == size
        and t.is_contiguous()
        and not t.is_neg()
        and t.untyped_storage().nbytes() >= (t.storage_offset() + size) * t.itemsize
    ):
        return int(t.data_ptr())
    return 0


def overlapping(table: np.ndarray, lengths: np.ndarray) -> bool:
    """Whether memory that is written (all columns but the gradients') belongs to two tensors."""
    first = np.delete(table, 1, axis=1).ravel()
    order = np.argsort(first)
    last = (first + np.repeat(lengths, table.shape[1] - 1).astype(np.uint64))[order]
    return bool((first[order][1:] < last[:-1]).any())
