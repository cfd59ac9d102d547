"""Penalties on the parameters of a network: proximal steps in the metric of the optimizer.

The counterparts of `adagrad_diff.penalties` for tensors, with the same names and formulas. `penalty.prox_(x, step)` replaces x
by argmin_y phi(y) + sum_i (y_i - x_i)^2 / (2 step_i), where `step` broadcasts against x. Each tensor is penalised by itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from ..common import check
from ._blocks import block_sum

INNER = 50  # Newton steps in GroupL2 at most


@dataclass(frozen=True)
class Penalty(ABC):
    """A convex function phi with a proximal operator in a diagonal metric."""

    @abstractmethod
    def value(self, x: Tensor) -> Tensor:
        """phi(x)."""

    @abstractmethod
    def prox_(self, x: Tensor, step: Tensor) -> None:
        """Replace x by its proximal point; `step` broadcasts against it."""

    def limits(self) -> tuple[float, float, float, float] | None:
        """(l1, l2, lower, upper) if the prox is to shrink by l1, divide for l2 and clip; None if it is of another kind."""
        return None

    def config(self) -> dict[str, Any]:
        """Plain data that `from_config` makes the same penalty of."""
        return {"name": type(self).__name__, **asdict(self)}


class _Elementwise(Penalty):
    """Shrink, divide, clip."""

    def prox_(self, x, step):
        l1, l2, lower, upper = self.limits()
        if l1:
            z = _readable(x)
            x.copy_(z.sign() * (z.abs() - step * l1).clamp_(min=0.0))
        if l2:
            x.div_(1.0 + step * l2)
        if lower > -math.inf or upper < math.inf:
            x.clamp_(lower, upper)

    def value(self, x):
        l1, l2, lower, upper = self.limits()
        outside = ((x < lower) | (x > upper)).any()
        return torch.where(outside, math.inf, l1 * x.abs().sum() + 0.5 * l2 * x.square().sum())


@dataclass(frozen=True)
class L1(_Elementwise):
    r"""lam sum |x_i|: weights become exactly zero."""

    lam: float

    def __post_init__(self):
        check.nonnegative(self.lam, "lam", "L1")

    def limits(self):
        return self.lam, 0.0, -math.inf, math.inf


@dataclass(frozen=True)
class Ridge(_Elementwise):
    r"""lam/2 sum x_i^2, by x_i / (1 + step_i lam).

    This is not the decoupled decay of AdamW, which shrinks all weights by the same factor 1 - lr lam: the proximal step
    shrinks by the metric, weights with large steps more.
    """

    lam: float

    def __post_init__(self):
        check.nonnegative(self.lam, "lam", "Ridge")

    def limits(self):
        return 0.0, self.lam, -math.inf, math.inf


@dataclass(frozen=True)
class ElasticNet(_Elementwise):
    """l1 sum |x_i| + l2/2 sum x_i^2."""

    l1: float
    l2: float

    def __post_init__(self):
        check.nonnegative(self.l1, "l1", "ElasticNet")
        check.nonnegative(self.l2, "l2", "ElasticNet")

    def limits(self):
        return self.l1, self.l2, -math.inf, math.inf


@dataclass(frozen=True)
class Box(_Elementwise):
    """lower <= x_i <= upper."""

    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self):
        if not self.lower <= self.upper or self.lower == math.inf or self.upper == -math.inf:
            raise ValueError(f"Box is empty: lower must not exceed upper. Got {self.lower!r} and {self.upper!r}.")

    def limits(self):
        return 0.0, 0.0, self.lower, self.upper


@dataclass(frozen=True)
class NonNegative(_Elementwise):
    """x_i >= 0."""

    def limits(self):
        return 0.0, 0.0, 0.0, math.inf


@dataclass(frozen=True)
class GroupL2(Penalty):
    r"""lam sum over groups of ||x_group||_2: whole rows, or the whole tensor, become zero.

    In a diagonal metric the proximal point is x_i = z_i t / (t + lam s_i), where t = ||x|| solves
    sum_i (z_i / (t + lam s_i))^2 = 1, and zero if the left side is at most 1 at t = 0.
    """

    lam: float
    over: str = "row"  # or "tensor"

    def __post_init__(self):
        check.nonnegative(self.lam, "lam", "GroupL2")
        check.one_of(self.over, ("row", "tensor"), "over", "GroupL2")

    def _rows(self, x: Tensor) -> Tensor:
        """The groups as rows of a matrix. Of a vector, every entry is a row."""
        return x.reshape(1, -1) if self.over == "tensor" else x.reshape(x.shape[0] if x.ndim else 1, -1)

    def value(self, x):
        return self.lam * torch.linalg.vector_norm(self._rows(x), dim=1).sum()

    def prox_(self, x, step):
        if not self.lam:
            return
        z = _readable(x).to(torch.promote_types(x.dtype, torch.float32))
        s = self.lam * step.to(z.dtype)
        # With q(t) = sum_i (z_i / (t + s_i))^2, Newton on 1 / sqrt(q(t)) = 1 climbs to the root from t = 0 and is exact at once
        # if all s_i are the same. Where q(0) <= 1 there is no root: zero is optimal.
        ratio = torch.where(z == 0, 0.0, z / s)
        outside = block_sum(ratio.square(), self.over) > 1
        t = torch.zeros_like(block_sum(z, self.over))
        for _ in range(INNER):
            inverse = torch.where(z == 0, 0.0, 1 / (t + s))
            scaled = (z * inverse).square()
            q = block_sum(scaled, self.over)
            slope = block_sum(scaled * inverse, self.over)
            t_next = t + torch.where(outside, q * (q.sqrt() - 1) / slope, 0.0).clamp_(min=0.0)
            if x.is_cpu and torch.equal(t_next, t):  # no waiting for an accelerator
                break
            t = t_next
        shrunk = torch.where(outside & (z != 0), z * (t / (t + s)), 0.0)
        x.copy_(torch.where(s == 0, z, shrunk))


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
