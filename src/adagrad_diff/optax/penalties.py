"""Penalties on the parameters of a model: proximal steps in the metric of the optimizer.

The formulas of the six are in `adagrad_diff.penalties.six_penalties`. Penalties are hashable, and
trees whose leaves are their numbers: close over them, pass them through jit, or vmap over lam.

>>> import jax
>>> import jax.numpy as jnp
>>> from adagrad_diff.optax import L1
>>> prox = jax.vmap(lambda penalty: penalty.prox(jnp.array([2.0, -0.5]), 1.0))
>>> print(prox(L1(jnp.array([0.0, 1.0]))))
[[ 2.  -0.5]
 [ 1.   0. ]]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..penalties import group_root
from ..penalties import six_penalties as six
from ._scalings import KNOWN


class Penalty(six.Shared, ABC):
    r"""A convex function phi of an array, with a proximal operator in a diagonal metric.

    To add one, write a frozen dataclass with `value` and `prox`.

    Examples
    --------
    A penalty that keeps entries positive, phi(x) = -lam sum log x:

    >>> from dataclasses import dataclass
    >>> import jax.numpy as jnp
    >>> from adagrad_diff.optax import Penalty, adagraddiff
    >>> @dataclass(frozen=True)
    ... class LogBarrier(Penalty):
    ...     lam: float
    ...     def value(self, x):
    ...         return -self.lam * jnp.log(x).sum()
    ...     def prox(self, z, step):  # the root of x - z = step lam / x
    ...         return (z + jnp.sqrt(z * z + 4 * step * self.lam)) / 2
    >>> optimizer = adagraddiff(0.5, penalty=LogBarrier(1.0))
    """

    xp = jnp

    @abstractmethod
    def value(self, x: jax.Array) -> jax.Array:
        """Return phi(x)."""

    @abstractmethod
    def prox(self, z: jax.Array, step: Any) -> jax.Array:
        """Return argmin_y phi(y) + sum_i (y_i - z_i)^2 / (2 step_i). `step` broadcasts to z."""

    @staticmethod
    def known(value: Any) -> bool:
        return isinstance(value, KNOWN)

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the penalty a tree, whose leaves are its numbers.

        They are not checked, because JAX also puts derivatives and other objects there.
        """
        super().__init_subclass__(**options)

        def flatten(penalty: Any) -> tuple[tuple[Any, ...], Any]:
            fields = dict(vars(penalty))
            words = tuple((k, fields.pop(k)) for k, v in vars(penalty).items() if type(v) is str)
            return tuple(fields.values()), (tuple(fields), words)

        def unflatten(known: Any, leaves: Any) -> Any:
            names, words = known
            penalty: Any = object.__new__(cls)
            vars(penalty).update([*zip(names, leaves, strict=True), *words])
            return penalty

        jax.tree_util.register_pytree_node(cls, flatten, unflatten)


class L1(six.L1, Penalty):
    __doc__ = six.L1.__doc__


class Ridge(six.Ridge, Penalty):
    __doc__ = six.Ridge.__doc__


class ElasticNet(six.ElasticNet, Penalty):
    __doc__ = six.ElasticNet.__doc__


class Box(six.Box, Penalty):
    __doc__ = six.Box.__doc__


class NonNegative(six.NonNegative, Penalty):
    __doc__ = six.NonNegative.__doc__


class GroupL2(six.GroupL2, Penalty):
    __doc__ = six.GroupL2.__doc__

    def value(self, x: jax.Array) -> jax.Array:
        return jnp.asarray(self.lam * group_root.group_norms(jnp, x, self.over).sum())

    def prox(self, z: jax.Array, step: Any) -> jax.Array:
        a = jnp.zeros_like(z) + jnp.asarray(step * self.lam, z.dtype)  # distributed like z
        return jnp.asarray(group_root.group_prox(jnp, z, a, self.over, _climb))


def _climb(change: Callable[..., jax.Array], h: jax.Array, z: jax.Array, a: jax.Array) -> jax.Array:
    """Do as `group_root.climb` does, but traced.

    One more step has the derivatives of the root. Loops have none in reverse mode.
    """
    start, fixed = jax.lax.stop_gradient(h), jax.lax.stop_gradient((z, a))

    def climbs(loop: Any) -> Any:
        n, h, before = loop
        return (n < group_root.GROUP_STEPS) & (h > before).any()

    def step(loop: Any) -> tuple[Any, jax.Array, jax.Array]:
        n, h, _ = loop
        return n + 1, h + jnp.clip(change(h, *fixed), 0.0, None), h

    root = jax.lax.while_loop(climbs, step, (0, start, jnp.full_like(start, -1.0)))[1]
    return jnp.where(root == 0, 0.0, root + change(root, z, a))
