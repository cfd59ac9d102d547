"""The rules of the optimizers as compiled loops over the entries of tensors, which are found by their addresses in a table.

What is the same for a whole step is known when a kernel is compiled (`Kind`), so that the loop has no branches. Constants come
as numbers of the right dtype: a literal 1 would make everything double.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import carray, types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic, register_jitable

from ..kernels import INLINE, compiled, named

NO_PROX, SHRINK_ONLY, FULL_PROX = range(3)  # what the proximal step consists of
NO_DECAY, COUPLED, DECOUPLED = range(
    3
)  # whether weights decay, and through the gradient or by themselves


class Kind(NamedTuple):
    """What a kernel is compiled for."""

    prox: int
    decay: int
    unseen: bool  # whether the prox is also applied where nothing has accumulated


def _pointer(context: Any, address: Any) -> Any:
    """An address as a pointer: the type, and the code."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.uint64), code


pointer: Any = intrinsic(_pointer)


@register_jitable(**INLINE)
def _decayed(x: Any, gradient: Any, lr: Any, decay: Any, one: Any, kind: Any) -> Any:
    """The weight and the gradient, one of which knows of the decay."""
    if kind == COUPLED:
        return x, gradient + decay * x
    if kind == DECOUPLED:
        return x * (one - lr * decay), gradient
    return x, gradient


@register_jitable(**INLINE)
def _prox(
    z: Any, step: Any, total: Any, direction: Any, penalty: Any, kind: Any, unseen: Any
) -> Any:
    """Shrink, divide, clip, as `penalties.six_penalties` states it, where something has accumulated (see `_proximal`)."""
    l1, l2, lower, upper, zero, one = penalty
    if kind == NO_PROX:
        return z
    seen = unseen or total != zero  # NaN is, too, and stays NaN
    step = step if seen else zero
    size = abs(z) - step * l1
    y = np.copysign(zero if size <= zero else size, z)
    if kind == FULL_PROX:
        y = y / (one + step * l2)
        y = lower if y < lower else y
        y = upper if y > upper else y
    return y if seen or direction != zero else z


@register_jitable(**INLINE)
def adagrad_diff(
    x: Any,
    g: Any,
    total: Any,
    prev: Any,
    mean: Any,
    numbers: Any,
    scalars: Any,
    penalty: Any,
    kind: Any,
) -> None:
    """total += (g - prev)**2;  x = prox(x - lr * g / (sqrt(total) + eps));  prev = g"""
    prox, weights, unseen = kind
    factor, decay, eps = scalars
    lr, one = numbers[0], penalty[5]
    for i in range(x.size):
        weight, gradient = _decayed(x[i], factor * g[i], lr, decay, one, weights)
        change = gradient - prev[i]
        s = total[i] + change * change
        total[i] = s
        prev[i] = gradient
        step = lr / (np.sqrt(s) + eps)
        x[i] = _prox(weight - step * gradient, step, s, gradient, penalty, prox, unseen)


@register_jitable(**INLINE)
def adam_diff(
    x: Any,
    g: Any,
    total: Any,
    prev: Any,
    mean: Any,
    numbers: Any,
    scalars: Any,
    penalty: Any,
    kind: Any,
) -> None:
    """total and mean decay; x = prox(x - lr * mean_hat / (max(sqrt(total_hat), least * abs(mean_hat)) + eps));  prev = g"""
    prox, weights, unseen = kind
    factor, decay, eps, beta1, beta2, rest1, rest2, least = scalars
    lr, c1, c2, one = numbers[0], numbers[1], numbers[2], penalty[5]
    for i in range(x.size):
        weight, gradient = _decayed(x[i], factor * g[i], lr, decay, one, weights)
        change = gradient - prev[i]
        s = beta2 * total[i] + rest2 * (change * change)
        m = beta1 * mean[i] + rest1 * gradient
        total[i] = s
        mean[i] = m
        prev[i] = gradient
        direction = m * c1
        root, bound = np.sqrt(s * c2), least * abs(direction)
        step = lr / ((root if root > bound else bound) + eps)
        x[i] = _prox(weight - step * direction, step, s, direction, penalty, prox, unseen)


@cache
def kernel(update: Callable[..., None], dtype: Any, kind: Kind) -> Any:
    """One compiled kernel per rule, dtype and kind."""
    prox, weights, unseen = kind

    def kernel(
        table: Any, starts: Any, numbers: Any, scalars: Any, penalty: Any, lo: int, hi: int
    ) -> None:
        """The update of the entries lo..hi, counted through all tensors."""
        k = np.searchsorted(starts, lo, side="right") - 1
        while lo < hi:
            first, size = lo - starts[k], min(hi, starts[k + 1]) - lo
            x = carray(pointer(table[k, 0]), (first + size,), dtype)[first:]
            g = carray(pointer(table[k, 1]), (first + size,), dtype)[first:]
            total = carray(pointer(table[k, 2]), (first + size,), dtype)[first:]
            prev = carray(pointer(table[k, 3]), (first + size,), dtype)[first:]
            mean = carray(pointer(table[k, 4]), (first + size,), dtype)[first:]
            update(x, g, total, prev, mean, numbers[k], scalars, penalty, (prox, weights, unseen))
            lo += size
            k += 1

    return compiled(
        named(
            kernel,
            repr((update.__name__, dtype, tuple(kind))).encode() + Path(__file__).read_bytes(),
        )
    )
