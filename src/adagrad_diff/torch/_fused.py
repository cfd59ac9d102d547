"""The fused step on CPUs: one compiled pass over parameters, gradients and buffers, in threads over all tensors together.

The kernels find tensors by their addresses. A tensor may get other memory at any time (`p.data = ...`, `share_memory_()`, a
trip to another process), so every address is asked for anew at every step, by `_plain`, which looks at sizes and flags, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from .._threads import thread_count
from ._kernels import COUPLED, DECOUPLED, FULL_PROX, NO_DECAY, NO_PROX, SHRINK_ONLY, Kind, kernel
from ._plain import FUSED_DTYPES, Plain
from ._team import over_team
from ._tensors import Pairs

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer


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

    def step(
        self, optimizer: DifferenceOptimizer, pairs: Pairs, group: dict[str, Any], factor: float
    ) -> Pairs:
        of, names = optimizer.state, optimizer.buffers
        states = [of[p] for p, _ in pairs]
        if not all("prev" in state for state in states):
            states = [optimizer.ready(p, group) for p, _ in pairs]
        tensors = [p for p, _ in pairs] + [
            g for _, g in pairs
        ]  # columns: parameters, gradients, buffers
        for name in names:
            tensors += [state[name] for state in states]
        known = optimizer.__dict__.setdefault("_plain", {})
        plain = known.get(id(group))
        addresses = None if plain is None else plain.addresses(tensors)
        if addresses is None:
            plain = known[id(group)] = Plain(tensors, 2 + len(names))
            addresses = plain.addresses(tensors)
        assert plain is not None and addresses is not None  # noqa: PT018
        for dtype, rows in plain.rows.items():
            params, some = [pairs[k][0] for k in rows], [states[k] for k in rows]
            for state in some:
                state.pop(
                    "support", None
                )  # where the previous gradient was not zero, if it was sparse
            increment_version(
                params
            )  # autograd is told before anything is written: a backward through the old values raises
            self._run(
                optimizer,
                some,
                addresses[rows],
                [plain.sizes[k] for k in rows],
                group,
                factor,
                dtype,
            )
        return [pairs[k] for k in plain.rest]

    @staticmethod
    def _run(
        optimizer: DifferenceOptimizer,
        states: list[dict[str, Any]],
        table: np.ndarray,
        sizes: list[int],
        group: dict[str, Any],
        factor: float,
        kind: torch.dtype,
    ) -> None:
        """Update the tensors whose addresses are the columns of the table: parameter, gradient, buffers."""
        dtype, limits = (
            FUSED_DTYPES[kind],
            None if group["penalty"] is None else group["penalty"].limits(),
        )
        prox = (
            NO_PROX
            if limits is None
            else SHRINK_ONLY
            if limits[1:] == (0.0, -np.inf, np.inf)
            else FULL_PROX
        )
        decay = group["weight_decay"]
        weights = (
            NO_DECAY if decay == 0 else DECOUPLED if group["decoupled_weight_decay"] else COUPLED
        )
        update = kernel(optimizer.kernel, dtype, Kind(prox, weights, group["prox_unseen"]))
        rows = optimizer.numbers(states, group)
        numbers = np.array(
            rows[:1] if rows.count(rows[0]) == len(rows) else rows, dtype
        )  # mostly one for all
        numbers = np.broadcast_to(numbers, (len(rows), numbers.shape[1])).copy()
        scalars = tuple(map(dtype, (factor, decay, *optimizer.scalars(group))))
        penalty = tuple(map(dtype, (*(limits or (0.0,) * 4), 0.0, 1.0)))
        starts = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        threads = min(thread_count(starts[-1]), torch.get_num_threads())
        if threads > 1 and overlapping(table, np.diff(starts) * np.dtype(dtype).itemsize):
            threads = 1  # one after the other, in their order
        addresses = np.zeros((len(table), 5), np.uint64)
        addresses[:, : table.shape[1]] = table
        over_team(
            lambda part, lo, hi: update(addresses, starts, numbers, scalars, penalty, lo, hi),
            int(starts[-1]),
            threads,
        )


def overlapping(table: np.ndarray, lengths: np.ndarray) -> bool:
    """Whether memory that is written (all columns but the gradients') belongs to two tensors."""
    first = np.delete(table, 1, axis=1).ravel()
    order = np.argsort(first)
    last = (first + np.repeat(lengths, table.shape[1] - 1).astype(np.uint64))[order]
    return bool((first[order][1:] < last[:-1]).any())
