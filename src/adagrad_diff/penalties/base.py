"""The contract of a penalty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._messages import call
from ._points import answer, can_hold, check_out, steps
from ._sizes import all_moderate

RELATIVE = 1e-9  # how far outside a set, relative to its size, a point still counts as inside


class Penalty(ABC):
    r"""A convex function phi of a vector x with a proximal operator in a diagonal metric.

    .. math:: \text{prox}(z, s) = \arg\min_x\; \varphi(x) + \sum_i \frac{(x_i - z_i)^2}{2 s_i}

    Subclasses write `value` and `apply`: `prox` checks what a user hands in and calls `apply`, the formula, which is also what
    a solver calls in its loop. (A subclass may write `prox` with its `out` itself instead; then nothing is checked.) Vectors
    have shape (d,), or (d, B) for B trajectories side by side; then a step has shape (), (d,), (1, B) or (d, B), and a value
    has shape (B,).

    `accepts` says which metrics the prox is exact in: "diagonal" (any step), "block" (steps constant on certain blocks, which
    `check_metric` knows) or "scalar" (one step for all coordinates). A solver asks `check_metric` before it starts, and
    hands a "scalar" penalty just one step, of shape (1,) or (1, B).

    `properties` says what phi is: "separable" (a sum over coordinates), "set" (the indicator of a set), "cone" (of a cone),
    "norm" (positively homogeneous and even, zero only at zero), "seminorm" (zero elsewhere too).
    """

    accepts: ClassVar[str] = "diagonal"
    properties: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def value(self, x: Any) -> Any:
        """phi(x): a number, or one per trajectory."""

    def prox(self, z: Any, step: Any, out: np.ndarray | None = None) -> np.ndarray:
        """The proximal point of z, written into `out` (which may be z) when given. Steps are positive."""
        z = point(self, z, "z")
        step = steps(step, z)
        if out is not None:
            check_out(out, z)
        result = out if out is not None and can_hold(out, z, step) else np.empty_like(z)
        self.apply(z, step, result)
        if out is None or out is result:
            return result
        np.copyto(out, result)
        return out

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        """out = prox(z, step), the formula: z, step and out have been checked.

        They are arrays of the dtype float32 or float64 and of one shape that fits the penalty, except that a "scalar" penalty
        may get one step of shape (1,) or (1, B). `out` may be z, and shares no memory with the others otherwise.
        """
        if type(self).prox is Penalty.prox:
            raise TypeError(
                f"{type(self).__name__} has no proximal operator: write its method apply(z, step, out)."
            )
        result = self.prox(z, step, out=out)
        if result is not None and result is not out:  # it should be, but that is easily forgotten
            np.copyto(out, answer(result, out.shape, f"{type(self).__name__}.prox"))

    def conjugate(self, y: Any) -> Any:
        """phi*(y) = sup_x <x, y> - phi(x); for a set, its support function. Where it is an indicator, 0 or inf."""
        raise ValueError(f"The conjugate of {type(self).__name__} is not known in closed form.")

    def polar(self, y: Any) -> Any:
        """For a norm or seminorm, sup of <x, y> over phi(x) <= 1: y is a subgradient of t phi at 0 iff polar(y) <= t."""
        raise ValueError(f"{type(self).__name__} is not a norm or seminorm: it has no polar.")

    def check_size(self, size: int) -> None:  # noqa: B027 (most penalties take any size)
        """Raise if this penalty cannot be applied to vectors of the given size."""

    def check_metric(self, labels: np.ndarray | None, isotropic: bool) -> None:
        """Raise if the prox is not exact in a metric with these blocks.

        `labels` are those of `adagrad_diff.rules.block_labels`; `isotropic` means one weight for all coordinates.
        """
        if self.accepts != "diagonal" and not isotropic:
            raise ValueError(_needs_scalar(self))

    @property
    def name(self) -> str:
        """What messages call this penalty."""
        return type(self).__name__

    def __repr__(self) -> str:
        return call(
            self, **{name: value for name, value in vars(self).items() if not name.startswith("_")}
        )


def point(penalty: Penalty, x: Any, name: str = "x") -> np.ndarray:
    """x as an array of shape (d,) or (d, B) whose size fits the penalty; it is copied only where it must be."""
    if not (type(x) is np.ndarray and x.dtype.char in "fd" and x.dtype.isnative):
        x = _check.real_array(x, repr(name))
    if not (0 < x.ndim < 3 and x.size):
        raise ValueError(
            f"{name!r} must have shape (d,), or (d, B) for B trajectories, and not be empty. Got shape {x.shape} instead."
        )
    penalty.check_size(len(x))
    array: np.ndarray = x if x.flags.carray else x.copy()
    return array


def _needs_scalar(penalty: Penalty) -> str:
    return (
        f"{penalty.name} has no exact proximal operator in a metric with more than one weight. Use blocks='all' "
        "(and no scale), so that all coordinates share one step, or NumericalProx(penalty), which solves it by iteration."
    )


def scalar_step(penalty: Penalty, step: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The one step of a penalty that needs a scalar metric: shape () for z of shape (d,), (B,) for z of shape (d, B)."""
    if len(step) > 1 and (step != step[:1]).any():
        raise ValueError(_needs_scalar(penalty))
    return np.broadcast_to(step[0], z.shape[1:])


def inner_prox(
    penalty: Penalty, z: np.ndarray, step: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """The prox of a penalty inside another one, whose steps may be too large or too small for the dtype of z."""
    if step.dtype != z.dtype or not all_moderate(step):
        limits = np.finfo(z.dtype)
        step = np.clip(step, limits.smallest_subnormal, limits.max).astype(z.dtype)
    if penalty.accepts != "scalar" and step.shape != z.shape:
        step = np.broadcast_to(step, z.shape).copy()
    out = np.empty_like(z) if out is None else out
    penalty.apply(z, step, out)
    return out
