"""Penalties on the parameters of a network: proximal steps in the metric of the optimizer.

Those of `adagrad_diff.penalties.six_penalties`, where their formulas are, for tensors. `penalty.prox_(x, step)` replaces x by
argmin_y phi(y) + sum_i (y_i - x_i)^2 / (2 step_i), where `step` broadcasts against x. Each tensor is penalised by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..penalties import group_root
from ..penalties import six_penalties as six
from ._sharded import namespace, placed


@dataclass(frozen=True)
class Penalty(six.Shared, ABC):
    """A convex function phi with a proximal operator in a diagonal metric."""

    @abstractmethod
    def value(self, x: Tensor) -> Tensor:
        """phi(x)."""

    @abstractmethod
    def prox_(self, x: Tensor, step: Tensor) -> None:
        """Replace x by its proximal point; `step` broadcasts against it."""

    def limits(self) -> six.Limits | None:
        """(l1, l2, lower, upper) if the prox is to shrink by l1, divide for l2 and clip; None if it is of another kind."""
        return None

    def config(self) -> dict[str, Any]:
        """Plain data that `from_config` makes the same penalty of."""
        return {"name": type(self).__name__, **asdict(self)}


class _Elementwise(Penalty):
    """Shrink, divide, clip."""

    @abstractmethod
    def limits(self) -> six.Limits: ...

    def value(self, x: Tensor) -> Tensor:
        result: Tensor = six.value(torch, x, self.limits())
        return result

    def prox_(self, x: Tensor, step: Tensor) -> None:
        x.copy_(placed(six.prox(torch, _readable(x), step, self.limits()), x))


class L1(six.L1, _Elementwise):
    __doc__ = six.L1.__doc__


class Ridge(six.Ridge, _Elementwise):
    __doc__ = six.Ridge.__doc__


class ElasticNet(six.ElasticNet, _Elementwise):
    __doc__ = six.ElasticNet.__doc__


class Box(six.Box, _Elementwise):
    __doc__ = six.Box.__doc__


class NonNegative(six.NonNegative, _Elementwise):
    __doc__ = six.NonNegative.__doc__


class GroupL2(six.GroupL2, Penalty):
    __doc__ = six.GroupL2.__doc__

    def value(self, x: Tensor) -> Tensor:
        result: Tensor = self.lam * group_root.group_norms(torch, x, self.over).sum()
        return result

    def prox_(self, x: Tensor, step: Tensor) -> None:
        if self.lam:
            z = _readable(x).to(torch.promote_types(x.dtype, torch.float32))
            a = self.lam * step.to(z.dtype)
            climb = partial(group_root.climb, namespace, arrived=_arrived)
            x.copy_(placed(group_root.group_prox(namespace, z, a, self.over, climb), x))


def _arrived(before: Tensor, h: Tensor) -> bool:
    """Whether the last step changed nothing; it is made all the same where that would be waiting for an accelerator."""
    return h.is_cpu and torch.equal(before, h)


def _readable(x: Tensor) -> Tensor:
    """x as it is now, for formulas whose result goes into x: a copy if autograd needs it later."""
    return x.clone() if torch.is_grad_enabled() else x


def from_config(config: dict[str, Any] | Penalty | None) -> Penalty | None:
    """The penalty that `config` describes."""
    if config is None or isinstance(config, Penalty):
        return config
    kinds = {kind.__name__: kind for kind in (L1, Ridge, ElasticNet, Box, NonNegative, GroupL2)}
    options = dict(config)
    return kinds[options.pop("name")](**options)
