"""The fused step on CPUs: one compiled pass over parameters, gradients and buffers, in threads over all tensors together.

The kernels find the tensors by their addresses in a table, so that thousands of small tensors cost one call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray, types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic, register_jitable
from torch import Tensor

from ..common.threads import thread_count
from ..kernels import INLINE, compiled, named
from ._team import over_team

FUSED_DTYPES = {torch.float32: np.float32, torch.float64: np.float64}
TENSOR_TYPES = (Tensor, torch.nn.Parameter)


class Entry(NamedTuple):
    """A parameter that the kernels may touch, and the addresses of its buffers. Holding these keeps the addresses good."""

    state: dict[str, Any]
    total: Tensor
    prev: Tensor
    dtype: torch.dtype
    size: int
    addresses: tuple[int, int, int]  # of total, prev, and a third buffer if there is one
    mean: Tensor | None


def entry(p: Tensor, state: dict[str, Any], names: tuple[str, ...]) -> Entry | None:
    """An entry, if the parameter and its buffers are plain arrays of one dtype on the CPU."""
    buffers = [state[name] for name in names]
    good = type(p) in TENSOR_TYPES and p.is_cpu and p.dtype in FUSED_DTYPES and p.is_contiguous() and p.layout is torch.strided
    if not (good and all(b.dtype is p.dtype and b.shape == p.shape and b.is_contiguous() for b in buffers)):
        return None
    first, second, third = [buffer.data_ptr() for buffer in buffers] + [0] * (3 - len(buffers))
    return Entry(state, state["total"], state["prev"], p.dtype, p.numel(), (first, second, third), state.get("mean"))


def _pointer(context: Any, address: Any) -> Any:
    """An address as a pointer: the type, and the code."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.uint64), code


pointer: Any = intrinsic(_pointer)

NO_PROX, SHRINK_ONLY, FULL_PROX = range(3)  # what the proximal step consists of, known when a kernel is compiled


@register_jitable(**INLINE)
def _prox(z: Any, step: Any, penalty: Any, kind: Any) -> Any:
    """Shrink, divide, clip, as `common.six_penalties` states it.

    (Constants come as numbers of the right dtype: a literal 1 would make everything double.)
    """
    l1, l2, lower, upper, zero, one = penalty
    if kind == NO_PROX:
        return z
    size = abs(z) - step * l1
    z = np.copysign(size if size > zero else zero, z)
    if kind == FULL_PROX:
        z = z / (one + step * l2)
        z = lower if z < lower else z
        z = upper if z > upper else z
    return z


@register_jitable(**INLINE)
def _adagrad_diff(x: Any, g: Any, total: Any, prev: Any, mean: Any, scalars: Any, c: Any, penalty: Any, kind: Any) -> None:
    """total += (g - prev)**2;  x = prox(x - lr * g / (sqrt(total) + eps));  prev = g"""
    factor, lr, eps = scalars
    for i in range(x.size):
        gradient = factor * g[i]
        change = gradient - prev[i]
        s = total[i] + change * change
        total[i] = s
        prev[i] = gradient
        step = lr / (np.sqrt(s) + eps)
        x[i] = _prox(x[i] - step * gradient, step, penalty, kind)


@register_jitable(**INLINE)
def _adam_diff(x: Any, g: Any, total: Any, prev: Any, mean: Any, scalars: Any, c: Any, penalty: Any, kind: Any) -> None:
    """total and mean decay; x = prox(x - lr * mean_hat / (sqrt(total_hat) + eps));  prev = g; c = 1 / (1 - beta**t)"""
    factor, lr, eps, beta1, beta2, rest1, rest2 = scalars
    c1, c2 = c[0], c[1]
    for i in range(x.size):
        gradient = factor * g[i]
        change = gradient - prev[i]
        s = beta2 * total[i] + rest2 * (change * change)
        m = beta1 * mean[i] + rest1 * gradient
        total[i] = s
        mean[i] = m
        prev[i] = gradient
        step = lr / (np.sqrt(s * c2) + eps)
        z = x[i] - step * (m * c1)
        x[i] = _prox(z, step, penalty, kind)


@cache
def _kernel(update: Callable[..., None], dtype: Any, kind: int) -> Any:
    """One compiled kernel per rule, dtype and kind of penalty."""

    def kernel(table: Any, starts: Any, corrections: Any, scalars: Any, penalty: Any, lo: int, hi: int) -> None:
        """The update of the entries lo..hi, counted through all tensors."""
        k = np.searchsorted(starts, lo, side="right") - 1
        while lo < hi:
            first, size = lo - starts[k], min(hi, starts[k + 1]) - lo
            x = carray(pointer(table[k, 0]), (first + size,), dtype)[first:]
            g = carray(pointer(table[k, 1]), (first + size,), dtype)[first:]
            total = carray(pointer(table[k, 2]), (first + size,), dtype)[first:]
            prev = carray(pointer(table[k, 3]), (first + size,), dtype)[first:]
            mean = carray(pointer(table[k, 4]), (first + size,), dtype)[first:]
            update(x, g, total, prev, mean, scalars, corrections[k], penalty, kind)
            lo += size
            k += 1

    return compiled(named(kernel, repr((update.__name__, dtype, kind)).encode() + Path(__file__).read_bytes()))


def step(
    update: Callable[..., None],
    addresses: tuple[list[int], list[int], list[tuple[int, int, int]]],
    sizes: list[int],
    corrections: Any,
    scalars: tuple[float, ...],
    limits: tuple[float, float, float, float] | None,
    dtype: Any,
) -> None:
    """Update tensors given by the addresses of x, gradient, and buffers."""
    table = np.empty((len(sizes), 5), np.uint64)
    table[:, 0], table[:, 1], table[:, 2:] = addresses
    starts = np.zeros(len(table) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    kind = NO_PROX if limits is None else SHRINK_ONLY if limits[1:] == (0.0, -np.inf, np.inf) else FULL_PROX
    kernel = _kernel(update, dtype, kind)
    constants = tuple(map(dtype, scalars)), tuple(map(dtype, (*(limits or (0.0,) * 4), 0.0, 1.0)))
    corrections = np.zeros((len(table), 2), dtype) if corrections is None else np.array(corrections, dtype)
    entries = int(starts[-1])
    threads = min(thread_count(entries), torch.get_num_threads())
    over_team(lambda part, lo, hi: kernel(table, starts, corrections, *constants, lo, hi), entries, threads)
