"""Penalties on the parameters of a network: proximal steps in the metric of the optimizer.

The formulas of the six are in `adagrad_diff.penalties.six_penalties`. Each tensor is penalized by
itself. To add a penalty, subclass `Penalty`: its docstring has an example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..penalties import group_root
from ..penalties import six_penalties as six


@dataclass(frozen=True)
class Penalty(six.Shared, ABC):
    r"""A convex function phi of a tensor, with a proximal operator in a diagonal metric.

    To add one, write a frozen dataclass with `value` and `prox`. Its fields are saved in state
    dicts as plain data, and the class is found again by its name. Set `separable` if phi is a sum
    over the entries and `prox` treats each of them by itself: large tensors are then updated in
    pieces, and `fused=True` compiles the step.

    Examples
    --------
    A penalty that keeps entries positive, phi(x) = -lam sum log x:

    >>> from dataclasses import dataclass
    >>> import torch
    >>> from adagrad_diff.torch import AdaGradDiff, Penalty
    >>> @dataclass(frozen=True)
    ... class LogBarrier(Penalty):
    ...     lam: float
    ...     separable = True
    ...     def value(self, x):
    ...         return -self.lam * x.log().sum()
    ...     def prox(self, z, step):  # the root of x - z = step lam / x
    ...         return (z + (z * z + 4 * step * self.lam).sqrt()) / 2
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = AdaGradDiff([x], lr=0.5, penalty=LogBarrier(1.0))
    >>> for _ in range(200):  # minimizes x^2 / 2 - log x, at 1
    ...     x.grad = x.detach().clone()
    ...     optimizer.step()
    >>> x.detach()
    tensor([1., 1.])
    """

    separable: ClassVar[bool] = False
    xp = torch

    @abstractmethod
    def value(self, x: Tensor) -> Tensor:
        """Return phi(x)."""

    @abstractmethod
    def prox(self, z: Tensor, step: Tensor) -> Tensor:
        """Return argmin_y phi(y) + sum_i (y_i - z_i)^2 / (2 step_i). `step` broadcasts to z."""

    def prox_(self, x: Tensor, step: Tensor) -> None:
        """Replace x by its proximal point."""
        x.copy_(placed(self.prox(x, step), x))

    def config(self) -> dict[str, Any]:
        """Return plain data from which `from_config` makes the same penalty."""
        return {"name": type(self).__name__, **asdict(self)}


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

    def value(self, x: Tensor) -> Tensor:
        result: Tensor = self.lam * group_root.group_norms(torch, x, self.over).sum()
        return result

    def prox(self, z: Tensor, step: Tensor) -> Tensor:
        if self.over == "tensor":
            z, step = gathered(z), gathered(step)
        wide = z.to(torch.promote_types(z.dtype, torch.float32))
        a = self.lam * step.to(wide.dtype)
        climb = partial(group_root.climb, torch, arrived=_arrived)
        result: Tensor = group_root.group_prox(torch, wide, a, self.over, climb)
        return result.to(z.dtype)


def _arrived(before: Tensor, h: Tensor) -> bool:
    """Return whether the last step changed nothing. On accelerators, do not wait for the answer."""
    return h.is_cpu and not torch.compiler.is_compiling() and torch.equal(before, h)


def placed(value: Any, x: Any) -> Any:
    """Distribute a DTensor over the processes as x is, as operations in place on x require."""
    places = getattr(x, "placements", None)
    same = places is None or value.placements == places
    return value if same else value.redistribute(placements=places)


def gathered(x: Any) -> Any:
    """Give every process the whole DTensor. Otherwise it may have no entries for a norm."""
    places = getattr(x, "placements", None)
    if places is None:
        return x
    from torch.distributed.tensor import Replicate

    return x.redistribute(placements=[Replicate()] * len(places))


def from_config(config: dict[str, Any] | Penalty | None) -> Penalty | None:
    """Return the penalty that `config` describes."""
    if config is None or isinstance(config, Penalty):
        return config
    options = dict(config)
    name = options.pop("name")
    kinds: list[Any] = [Penalty]
    for kind in kinds:
        kinds += kind.__subclasses__()
    kind = {kind.__name__: kind for kind in kinds}.get(name)
    if kind is None:
        raise ValueError(
            f"This state_dict has a penalty {name!r}, which is not defined. Import the module that "
            "defines it before loading."
        )
    result: Penalty = kind(**options)
    return result
