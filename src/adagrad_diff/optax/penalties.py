"""Penalties on the parameters of a model: proximal steps in the metric of the optimizer.

Those of `adagrad_diff.penalties.six_penalties`, where their formulas are, for JAX. `penalty.prox(z, step)` is
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

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from ..penalties import group_root
from ..penalties import six_penalties as six
from . import _options

Kind = TypeVar("Kind", bound=type)


class Penalty(six.Shared, ABC):
    """A convex function phi with a proximal operator in a diagonal metric."""

    @abstractmethod
    def value(self, x: jax.Array) -> jax.Array:
        """phi(x)."""

    @abstractmethod
    def prox(self, z: jax.Array, step: Any) -> jax.Array:
        """The proximal point of z; `step` broadcasts against it."""

    @staticmethod
    def known(value: Any) -> bool:
        return isinstance(value, _options.KNOWN)


class _Elementwise(Penalty):
    """Shrink, divide, clip."""

    @abstractmethod
    def limits(self) -> six.Limits: ...

    def value(self, x: jax.Array) -> jax.Array:
        return jnp.asarray(six.value(jnp, x, self.limits()))

    def prox(self, z: jax.Array, step: Any) -> jax.Array:
        return jnp.asarray(six.prox(jnp, z, step, self.limits()))


def _tree(kind: Kind) -> Kind:
    """Register a penalty as a tree of its numbers. Leaves are not checked: JAX puts derivatives and anything else there."""
    names = [f.name for f in fields(kind) if f.name != "over"]

    def flatten(penalty: Any) -> tuple[list[Any], str | None]:
        return [getattr(penalty, name) for name in names], getattr(penalty, "over", None)

    def unflatten(over: str | None, leaves: Any) -> Any:
        penalty: Any = object.__new__(kind)
        for name, leaf in zip(names, leaves, strict=True):
            object.__setattr__(penalty, name, leaf)
        if over is not None:
            object.__setattr__(penalty, "over", over)
        return penalty

    jax.tree_util.register_pytree_node(kind, flatten, unflatten)
    return kind


@_tree
class L1(six.L1, _Elementwise):
    __doc__ = six.L1.__doc__


@_tree
class Ridge(six.Ridge, _Elementwise):
    __doc__ = six.Ridge.__doc__


@_tree
class ElasticNet(six.ElasticNet, _Elementwise):
    __doc__ = six.ElasticNet.__doc__


@_tree
class Box(six.Box, _Elementwise):
    __doc__ = six.Box.__doc__


@_tree
class NonNegative(six.NonNegative, _Elementwise):
    __doc__ = six.NonNegative.__doc__


@_tree
class GroupL2(six.GroupL2, Penalty):
    __doc__ = six.GroupL2.__doc__

    def value(self, x: jax.Array) -> jax.Array:
        return jnp.asarray(self.lam * group_root.group_norms(jnp, x, self.over).sum())

    def prox(self, z: jax.Array, step: Any) -> jax.Array:
        a = jnp.zeros_like(z) + jnp.asarray(
            step * self.lam, z.dtype
        )  # in the shape of z, and spread over devices like it
        return jnp.asarray(group_root.group_prox(jnp, z, a, self.over, _climb))


def _climb(change: Callable[..., jax.Array], h: jax.Array, z: jax.Array, a: jax.Array) -> jax.Array:
    """As `group_root.climb`, traced. One more step has the derivatives of the root: loops have none in reverse mode."""
    start, fixed = jax.lax.stop_gradient(h), jax.lax.stop_gradient((z, a))

    def climbs(loop: Any) -> Any:
        n, h, before = loop
        return (n < group_root.GROUP_STEPS) & (h > before).any()

    def step(loop: Any) -> tuple[Any, jax.Array, jax.Array]:
        n, h, _ = loop
        return n + 1, h + jnp.clip(change(h, *fixed), 0.0, None), h

    root = jax.lax.while_loop(climbs, step, (0, start, jnp.full_like(start, -1.0)))[1]
    return jnp.where(root == 0, 0.0, root + change(root, z, a))
