"""The Euclidean norms of groups in a diagonal metric: one number per group away from a formula, and how to find it.

With a = lam step, the proximal point of z in a group is

    x_i = z_i h / (h + a_i),   h = ||x||,   h > 0 with q(h) = sum_i (z_i / (h + a_i))^2 = 1,   or h = 0 if q(0) <= 1.

This is Newton's method for 1 / sqrt(q(h)) = 1. The left side is concave in h, so that the method climbs to the root from below,
and linear if all a are equal: then it is there at once. `xp` is the namespace of the arrays (numpy, torch, jax.numpy). The core
does the same in compiled loops (`adagrad_diff.penalties`), for which this is the statement: the tests compare them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BLOCKS = ("element", "row", "tensor")
GROUP_STEPS = 50  # of Newton's method, at most


def group_norms(xp: Any, x: Any, over: str) -> Any:
    """The norms of the groups, with derivative 0 at 0."""
    if over == "element":
        return xp.abs(x)
    square = block_sum(x * x, over)
    return xp.where(square == 0, 0.0, xp.sqrt(xp.where(square == 0, 1.0, square)))


def start(xp: Any, z: Any, a: Any, over: str) -> Any:
    """A number that is not above the root: where the largest term alone is 1, or 0. No square from there on is above 1."""
    return xp.clip(block_max(xp, xp.abs(z) - a, over), 0.0, None)


def change(xp: Any, h: Any, z: Any, a: Any, over: str) -> Any:
    """What a step of the method adds to h. Where h = 0 is optimal it would lead down from there."""
    zero = z == 0  # adds nothing, even where h + a is zero, too
    inverse = xp.where(zero, 0.0, 1 / xp.where(zero, 1.0, h + a))
    terms = (z * inverse) * (z * inverse)
    q, slope = block_sum(terms, over), block_sum(terms * inverse, over)
    some = slope > 0
    q, slope = xp.where(some, q, 1.0), xp.where(some, slope, 1.0)
    return q * (xp.sqrt(q) - 1) / slope


def climb(
    xp: Any, change: Callable[..., Any], h: Any, z: Any, a: Any, arrived: Callable[[Any, Any], bool]
) -> Any:
    """From the start to the root, in a plain loop that ends when arrived(before, h)."""
    for _ in range(GROUP_STEPS):
        before, h = h, h + xp.clip(change(h, z, a), 0.0, None)
        if arrived(before, h):
            break
    return h


def group_prox(xp: Any, z: Any, a: Any, over: str, root: Callable[..., Any]) -> Any:
    """The proximal point of z, for a that broadcasts against it; root(change, h, z, a) climbs to the root from h."""
    if 0 in z.shape:
        return z
    h = root(lambda h, z, a: change(xp, h, z, a, over), start(xp, z, a, over), z, a)
    zero = h == 0
    part = xp.where(zero, 0.0, h / xp.where(zero, 1.0, h + a))
    return xp.where(a == 0, z, z * part)


def inner(ndim: int, blocks: str) -> tuple[int, ...]:
    """The axes that a block extends over. A row is what the first axis counts: of a vector, every entry."""
    return {"element": (), "row": tuple(range(1, ndim)), "tensor": tuple(range(ndim))}[blocks]


def block_sum(x: Any, blocks: str) -> Any:
    """The sum over each block, in a shape that broadcasts against x."""
    axes = inner(x.ndim, blocks)
    return x.sum(axis=axes, keepdims=True) if axes else x


def block_max(xp: Any, x: Any, blocks: str) -> Any:
    """The largest entry of each block, likewise; `xp` is the namespace of the array."""
    axes = inner(x.ndim, blocks)
    return xp.amax(x, axis=axes, keepdims=True) if axes else x
