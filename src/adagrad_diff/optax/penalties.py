"""Penalties on the parameters of a model: proximal steps in the metric of the optimizer.

The counterparts of `adagrad_diff.penalties` for JAX, with the same names and formulas. `penalty.prox(z, step)` is
argmin_y phi(y) + sum_i (y_i - z_i)^2 / (2 step_i), where `step` broadcasts against z. Penalties are hashable, and trees whose
leaves are their numbers: close over them, pass them through jit, or vmap over lam.

>>> import jax
>>> import jax.numpy as jnp
>>> from adagrad_diff.optax import L1
>>> print(jax.vmap(lambda penalty: penalty.prox(jnp.array([2.0, -0.5]), 1.0))(L1(jnp.array([0.0, 1.0]))))
[[ 2.  -0.5]
 [ 1.   0. ]]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp

from ..common import check as core_check
from . import _check
from ._blocks import block_sum, inner

INNER = 50  # Newton steps in GroupL2 at most


class Penalty(ABC):
    """A convex function phi with a proximal operator in a diagonal metric."""

    @abstractmethod
    def value(self, x: jax.Array) -> jax.Array:
        """phi(x)."""

    @abstractmethod
    def prox(self, z: jax.Array, step: Any) -> jax.Array:
        """The proximal point of z; `step` broadcasts against it."""


def _tree(kind: type) -> type:
    """Register a penalty as a tree of its numbers. Leaves are not checked: JAX puts derivatives and anything else there."""
    names = [f.name for f in fields(kind) if f.name != "over"]

    def flatten(penalty):
        return [getattr(penalty, name) for name in names], getattr(penalty, "over", None)

    def unflatten(over, leaves):
        penalty = object.__new__(kind)
        for name, value in zip((*names, "over"), (*leaves, over), strict=True):
            if name in kind.__dataclass_fields__:
                object.__setattr__(penalty, name, value)
        return penalty

    jax.tree_util.register_pytree_node(kind, flatten, unflatten)
    return kind


def _shrink(z: jax.Array, by: Any) -> jax.Array:
    """Towards zero, and not beyond."""
    return z - jnp.clip(z, -by, by)


def _nonnegative(penalty: Penalty, *names: str) -> None:
    for name in names:
        _check.known(core_check.nonnegative, getattr(penalty, name), name, type(penalty).__name__)


@_tree
@dataclass(frozen=True)
class L1(Penalty):
    r"""lam sum \|x_i\|: parameters become exactly zero."""

    lam: Any

    def __post_init__(self):
        _nonnegative(self, "lam")

    def value(self, x):
        return self.lam * jnp.abs(x).sum()

    def prox(self, z, step):
        return _shrink(z, step * self.lam)


@_tree
@dataclass(frozen=True)
class Ridge(Penalty):
    r"""lam/2 sum x_i^2, by x_i / (1 + step_i lam).

    This is not the decoupled decay of AdamW, which shrinks all parameters by the same factor 1 - lr lam: the proximal step
    shrinks by the metric, parameters with large steps more.
    """

    lam: Any

    def __post_init__(self):
        _nonnegative(self, "lam")

    def value(self, x):
        return 0.5 * self.lam * (x**2).sum()

    def prox(self, z, step):
        return z / (1 + step * self.lam)


@_tree
@dataclass(frozen=True)
class ElasticNet(Penalty):
    r"""l1 sum \|x_i\| + l2/2 sum x_i^2."""

    l1: Any
    l2: Any

    def __post_init__(self):
        _nonnegative(self, "l1", "l2")

    def value(self, x):
        return self.l1 * jnp.abs(x).sum() + 0.5 * self.l2 * (x**2).sum()

    def prox(self, z, step):
        return _shrink(z, step * self.l1) / (1 + step * self.l2)


@_tree
@dataclass(frozen=True)
class Box(Penalty):
    """lower <= x_i <= upper."""

    lower: Any = -math.inf
    upper: Any = math.inf

    def __post_init__(self):
        known = isinstance(self.lower, _check.KNOWN) and isinstance(self.upper, _check.KNOWN)
        if known and (not self.lower <= self.upper or self.lower == math.inf or self.upper == -math.inf):
            raise ValueError(f"Box is empty: lower must not exceed upper. Got {self.lower!r} and {self.upper!r}.")

    def value(self, x):
        return jnp.where(((x < self.lower) | (x > self.upper)).any(), jnp.inf, 0.0)

    def prox(self, z, step):
        return jnp.clip(z, self.lower, self.upper)


@_tree
@dataclass(frozen=True)
class NonNegative(Penalty):
    """x_i >= 0."""

    def value(self, x):
        return jnp.where((x < 0).any(), jnp.inf, 0.0)

    def prox(self, z, step):
        return jnp.maximum(z, 0.0)


@_tree
@dataclass(frozen=True)
class GroupL2(Penalty):
    r"""lam sum over groups of \|\|x_group\|\|_2: whole rows, or the whole array, become zero.

    In a diagonal metric the proximal point is x_i = z_i t / (t + lam s_i), where t = \|\|x\|\| solves
    sum_i (z_i / (t + lam s_i))^2 = 1, and zero if the left side is at most 1 at t = 0. Of a vector, every entry is a row.
    """

    lam: Any
    over: str = "row"  # or "tensor"

    def __post_init__(self):
        _nonnegative(self, "lam")
        core_check.one_of(self.over, ("row", "tensor"), "over", "GroupL2")

    def value(self, x):
        return self.lam * _norm(x, self.over).sum()

    def prox(self, z, step):
        s = jnp.zeros_like(z) + jnp.asarray(step * self.lam, z.dtype)  # in the shape of z, and spread over devices like it
        # Where q(0) <= 1 there is no root: zero is optimal.
        outside = block_sum(_ratio(z, s) ** 2, self.over) > 1
        # The loop finds the root, and one more step from there has the root's derivatives: loops have none in reverse mode.
        t = self._newton(self._root(*jax.lax.stop_gradient((z, s, outside))), z, s, outside)
        shrunk = jnp.where(outside, z * _ratio(t, t + s), 0.0)
        return jnp.where(s == 0, z, shrunk)

    def _root(self, z, s, outside):
        def climbs(loop):
            n, t, before = loop
            return (n < INNER) & (t != before).any()

        def step(loop):
            n, t, _ = loop
            return n + 1, jnp.maximum(t, self._newton(t, z, s, outside)), t

        # Not from t = 0, where squares of z / s may be too large a number, but from a bound of the root.
        largest = s.max(inner(z.ndim, self.over), keepdims=True, initial=0.0)
        start = jnp.maximum(_norm(z, self.over) - largest, 0.0)
        return jax.lax.while_loop(climbs, step, (0, start, start - 1))[1]

    def _newton(self, t, z, s, outside):
        """With q(t) = sum_i (z_i / (t + s_i))^2: Newton on 1 / sqrt(q(t)) = 1, which climbs to the root from below."""
        ratio = _ratio(z, t + s)
        q = jnp.where(outside, block_sum(ratio**2, self.over), 1.0)
        slope = jnp.where(outside, block_sum(ratio**2 * _ratio(jnp.ones_like(z), t + s), self.over), 1.0)
        return t + q * (jnp.sqrt(q) - 1) / slope


def _norm(x: jax.Array, over: str) -> jax.Array:
    """The norms of the groups, with derivative 0 at 0."""
    square = block_sum(x**2, over)
    return jnp.where(square == 0, 0.0, jnp.sqrt(jnp.where(square == 0, 1.0, square)))


def _ratio(a: jax.Array, b: jax.Array) -> jax.Array:
    """a / b, and 0 where a is 0, whatever b; infinite for no derivative."""
    return jnp.where(a == 0, 0.0, a / jnp.where(a == 0, 1.0, b))
