"""The six penalties that the core, PyTorch and optax share: their names, parameters, checks and formulas, once.

Five of them shrink, divide and clip every entry by itself:

    phi(x) = sum_i l1 |x_i| + l2/2 x_i^2  where lower <= x_i <= upper, else inf,
    prox(z, s)_i = clip( shrink(z_i, s_i l1) / (1 + s_i l2), lower, upper ),  shrink(z, by) = sign(z) max(|z| - by, 0)

(in this order also if there are both strengths and bounds, as long as 0 is inside the bounds). GroupL2 is

    phi(x) = lam sum_g ||x_g||,   prox(z, s)_i = z_i h / (h + lam s_i),   h >= 0 the root of the group: see `group_root`.

The formulas take arrays of any kind, and `xp`, their namespace (numpy, torch, jax.numpy). The doors call them; the core has
its own compiled loops (for strengths per coordinate, and groups of any shape), which the tests compare with these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .. import _check

GROUPS = ("row", "tensor")  # what a group may be

Number: TypeAlias = Any  # a float; in JAX also an array, or what jit puts in its place
Limits: TypeAlias = tuple[Number, Number, Number, Number]  # l1, l2, lower, upper


# ---------------------------------------------------------------- names, parameters, checks


class Shared:
    """A penalty whose strengths are checked when it is made."""

    strengths: ClassVar[tuple[str, ...]] = ()  # parameters that are numbers >= 0

    def __post_init__(self) -> None:
        for name in self.strengths:
            if self.known(value := getattr(self, name)):
                _check.nonnegative(value, name, type(self).__name__)

    @staticmethod
    def known(value: Any) -> bool:
        """Whether a parameter's value can be looked at now."""
        return True


class Entrywise(Shared):
    """A penalty that shrinks, divides and clips every entry by itself."""

    xp: ClassVar[Any]  # namespace of the arrays
    separable = True

    def value(self, x: Any) -> Any:
        return value(self.xp, x, self.limits())

    def prox(self, z: Any, step: Any) -> Any:
        return prox(self.xp, z, step, self.limits())

    def limits(self) -> Limits:
        raise NotImplementedError


@dataclass(frozen=True)
class L1(Entrywise):
    r"""lam sum \|x_i\|: entries become exactly zero."""

    lam: Number
    strengths = ("lam",)

    def limits(self) -> Limits:
        return self.lam, 0.0, -math.inf, math.inf


@dataclass(frozen=True)
class Ridge(Entrywise):
    r"""lam/2 sum x_i^2, by x_i / (1 + step_i lam).

    This is not the decoupled decay of AdamW, which shrinks all parameters by the same factor 1 - lr lam: the proximal step
    shrinks by the metric, parameters with large steps more.
    """

    lam: Number
    strengths = ("lam",)

    def limits(self) -> Limits:
        return 0.0, self.lam, -math.inf, math.inf


@dataclass(frozen=True)
class ElasticNet(Entrywise):
    r"""l1 sum \|x_i\| + l2/2 sum x_i^2."""

    l1: Number
    l2: Number
    strengths = ("l1", "l2")

    def limits(self) -> Limits:
        return self.l1, self.l2, -math.inf, math.inf


@dataclass(frozen=True)
class Box(Entrywise):
    """lower <= x_i <= upper."""

    lower: Number = -math.inf
    upper: Number = math.inf

    def __post_init__(self) -> None:
        if self.known(self.lower) and self.known(self.upper) and is_empty(self.lower, self.upper):
            raise ValueError(
                f"Box is empty: lower must not exceed upper. Got {self.lower!r} and {self.upper!r}."
            )

    def limits(self) -> Limits:
        return 0.0, 0.0, self.lower, self.upper


@dataclass(frozen=True)
class NonNegative(Entrywise):
    """x_i >= 0."""

    def limits(self) -> Limits:
        return 0.0, 0.0, 0.0, math.inf


@dataclass(frozen=True)
class GroupL2(Shared):
    r"""lam sum over groups of \|\|x_group\|\|_2: whole rows, or the whole array, become zero.

    Of a vector, every entry is a row. (The core has vectors only; there `groups` are labels of the coordinates.)
    """

    lam: Number
    over: str = "row"  # or "tensor"
    strengths = ("lam",)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.one_of(self.over, GROUPS, "over", "GroupL2")


def is_empty(lower: Any, upper: Any) -> Any:
    """Whether no number lies between the bounds (one of which may be NaN), or none of those for a coordinate."""
    return np.logical_not(lower <= upper) | (lower == math.inf) | (upper == -math.inf)


# ---------------------------------------------------------------- shrink, divide, clip


def _is(value: Number, constant: float) -> bool:
    """Whether a limit is known to be what changes nothing."""
    return isinstance(value, float) and value == constant


def soft(xp: Any, z: Any, by: Any) -> Any:
    """Return sign(z) max(|z| - by, 0)."""
    return z - xp.clip(z, -by, by)


def prox(xp: Any, z: Any, step: Any, limits: Limits) -> Any:
    """The proximal point of z; `step` broadcasts against it."""
    l1, l2, lower, upper = limits
    if not _is(l1, 0.0):
        z = soft(xp, z, step * l1)
    if not _is(l2, 0.0):
        z = z / (1 + step * l2)
    if not (_is(lower, -math.inf) and _is(upper, math.inf)):
        z = xp.clip(
            z, None if _is(lower, -math.inf) else lower, None if _is(upper, math.inf) else upper
        )
    return z


def value(xp: Any, x: Any, limits: Limits) -> Any:
    """phi(x) of a whole array."""
    l1, l2, lower, upper = limits
    total = xp.zeros_like(x).sum()  # in the dtype of x
    if not _is(l1, 0.0):
        total = total + l1 * xp.abs(x).sum()
    if not _is(l2, 0.0):
        total = total + 0.5 * l2 * (x * x).sum()
    if not (_is(lower, -math.inf) and _is(upper, math.inf)):
        total = xp.where(((x < lower) | (x > upper)).any(), math.inf, total)
    return total
