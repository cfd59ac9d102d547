"""The contract of a penalty, and the adapter for objects that fulfil it without knowing us."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

RELATIVE = 1e-9  # how far outside a set, relative to its size, a point still counts as inside


class Penalty(ABC):
    r"""A convex function phi of a vector x with a proximal operator in a diagonal metric.

    .. math:: \text{prox}(z, s) = \arg\min_x\; \varphi(x) + \sum_i \frac{(x_i - z_i)^2}{2 s_i}

    Subclasses write `value` and `prox`. Vectors have shape (d,), or (d, B) for B trajectories side by side; then a
    step has shape (), (d,), (1, B) or (d, B), and a value has shape (B,).

    `accepts` says which metrics the prox is exact in: "diagonal" (any step), "block" (steps constant on certain blocks, which
    `check_metric` knows) or "scalar" (one step for all coordinates). A solver asks `check_metric` before it starts, and
    hands a "scalar" penalty just one step, of shape (1,) or (1, B).

    `properties` says what phi is: "separable" (a sum over coordinates), "set" (the indicator of a set), "cone" (of a cone),
    "norm" (positively homogeneous and even, zero only at zero), "seminorm" (zero elsewhere too).
    """

    accepts: ClassVar[str] = "diagonal"
    properties: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def value(self, x: np.ndarray) -> Any:
        """phi(x): a number, or one per trajectory."""

    @abstractmethod
    def prox(self, z: np.ndarray, step: Any, out: np.ndarray | None = None) -> np.ndarray:
        """The proximal point of z, written into `out` (which may be z) when given."""

    def conjugate(self, y: np.ndarray) -> Any:
        """phi*(y) = sup_x <x, y> - phi(x); for a set, its support function. Where it is an indicator, 0 or inf."""
        raise ValueError(f"The conjugate of {type(self).__name__} is not known in closed form.")

    def polar(self, y: np.ndarray) -> Any:
        """For a norm or seminorm, sup of <x, y> over phi(x) <= 1: y is a subgradient of t phi at 0 iff polar(y) <= t."""
        raise ValueError(f"{type(self).__name__} is not a norm or seminorm: it has no polar.")

    def check_size(self, size: int) -> None:  # noqa: B027 (most penalties take any size)
        """Raise if this penalty cannot be applied to vectors of the given size."""

    def check_metric(self, labels: np.ndarray | None, isotropic: bool) -> None:
        """Raise if the prox is not exact in a metric with these blocks.

        `labels` are those of `adagrad_diff.blocks.block_labels`; `isotropic` means one weight for all coordinates.
        """
        if self.accepts != "diagonal" and not isotropic:
            raise ValueError(_needs_scalar(self))

    @property
    def name(self) -> str:
        """What messages call this penalty."""
        return type(self).__name__

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({fields})"


def _needs_scalar(penalty: Penalty) -> str:
    return (
        f"{penalty.name} has no exact proximal operator in a metric with more than one weight. Use blocks='all' "
        "(and no scale), so that all coordinates share one step, or NumericalProx(penalty), which solves it by iteration."
    )


def scalar_step(penalty: Penalty, step: Any, z: np.ndarray) -> np.ndarray:
    """The one step of a penalty that needs a scalar metric: shape () for z of shape (d,), (B,) for z of shape (d, B)."""
    step = np.asarray(step, dtype=z.dtype)
    if step.ndim == 1 and z.ndim == 2:
        step = step[:, None]
    if step.ndim and step.shape[0] > 1 and (step != step[:1]).any():
        raise ValueError(_needs_scalar(penalty))
    first = step[0] if step.ndim else step
    return np.broadcast_to(first, z.shape[1:])


class Foreign(Penalty):
    """Anything with value(x) and prox(z, step), taken at its word about metrics. It need only know vectors: trajectories are
    handed to it one by one.
    """

    def __init__(self, penalty: Any):
        self.penalty = penalty
        self.accepts = getattr(penalty, "accepts", "diagonal")  # type: ignore[misc]

    @property
    def name(self):
        return type(self.penalty).__name__

    def value(self, x):
        if x.ndim == 1:
            return float(self.penalty.value(x))
        return np.array([self.value(column) for column in _columns(x)])

    def prox(self, z, step, out=None):
        if z.ndim == 2:
            out = np.empty_like(z) if out is None else out
            for k, column in enumerate(_columns(z)):
                out[:, k] = self.prox(column, np.ascontiguousarray(step[:, k]) if np.ndim(step) == 2 else step)
            return out
        result = np.asarray(self.penalty.prox(z, step))
        if result.shape != z.shape:
            raise ValueError(f"{type(self.penalty).__name__}.prox must return shape {z.shape}. Got {result.shape} instead.")
        if out is None:
            return result
        np.copyto(out, result)
        return out


def _columns(x: np.ndarray) -> Iterator[np.ndarray]:
    return (np.ascontiguousarray(x[:, k]) for k in range(x.shape[1]))


def as_penalty(penalty: Any) -> Penalty:
    """A `Penalty`: None is the zero function, other objects need value(x) and prox(z, step)."""
    from .zero import Zero

    if penalty is None:
        return Zero()
    if isinstance(penalty, Penalty):
        return penalty
    if isinstance(penalty, type) or not (hasattr(penalty, "value") and hasattr(penalty, "prox")):
        raise TypeError(f"'penalty' must be None or have methods value(x) and prox(z, step). Got {penalty!r} instead.")
    return Foreign(penalty)


def strength(lam: Any, name: str, owner: str) -> np.ndarray:
    """A penalty's strength: one number >= 0, or one per coordinate, as a float64 vector of length 1 or d."""
    try:
        array = np.atleast_1d(np.asarray(lam, dtype=np.float64))
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or array.size == 0 or not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"The {name!r} parameter of {owner} must be a number >= 0, or one per coordinate. Got {lam!r}.")
    return array


def as_float(x: Any) -> np.ndarray:
    """x as a float32 or float64 array."""
    x = np.asarray(x)
    return x if x.dtype.char in "fd" else x.astype(np.float64)


def prepare(z: Any, step: Any, out: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z as a float array, a step of the same shape and dtype, and where to write the result."""
    z, step = as_float(z), np.asarray(step)
    if z.ndim not in (1, 2) or (out is not None and out.shape != z.shape):
        raise ValueError(f"'z' must have shape (d,) or (d, B), and 'out' the same. Got z of shape {z.shape} instead.")
    if step.ndim == 1 and z.ndim == 2:
        step = step[:, None]
    if step.shape != z.shape or step.dtype != z.dtype:
        try:
            full = np.broadcast_to(step, z.shape)
        except ValueError:
            raise ValueError(
                f"'step' must have shape (), (d,), (1, B) or (d, B) for z of shape {z.shape}. Got {step.shape} instead."
            ) from None
        if not (step > 0).all():
            raise ValueError("'step' must be positive.")
        step = full.astype(z.dtype)
    if out is None:
        out = np.empty_like(z)
    return z, step, out
