"""The contract of a penalty, and what all penalties share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._messages import call
from .arrays import answer, check_out, indicator, point, quiet, steps, sum_rounding, tolerance

ANSWERS = {  # methods that a subclass must not inherit once it changes the function
    "quadratic_terms",
    "box_hyperplane",
    "norm_part",
    "null_space",
    "polar_inequalities",
    "_conjugate_near",
}


@dataclass
class QuadraticTerms:
    r"""Separable quadratic terms, bounds and group norms, one number per coordinate or group.

    .. math:: \varphi(x) = \sum_i l_{1i} |x_i| + \tfrac{l_{2i}}{2} x_i^2 + \sum_k \text{strength}_k \|x_k\|_2
              \quad\text{where } \text{lower} \le x \le \text{upper}

    `rounding` is the relative rounding error of the strengths.
    """

    l1: np.ndarray
    l2: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    labels: np.ndarray | None = None  # group of each coordinate, from 0
    strength: np.ndarray | None = None  # of each group
    rounding: float = 0.0

    @classmethod
    def of(
        cls,
        size: int,
        l1: Any = 0.0,
        l2: Any = 0.0,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        **groups: Any,
    ) -> QuadraticTerms:
        """Return the terms of `size` coordinates from numbers or vectors."""
        l1, l2, lower, upper = (
            np.broadcast_to(v, size).astype(np.float64) for v in (l1, l2, lower, upper)
        )
        return cls(l1, l2, lower, upper, **groups)

    @property
    def bounded(self) -> bool:
        """Whether there is a finite bound."""
        return bool((self.lower > -np.inf).any() or (self.upper < np.inf).any())


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
    accuracy: float = 1e-13  # relative accuracy of the prox in double precision

    def __init_subclass__(cls, **options: Any) -> None:
        """Reset the answers that a user's subclass would inherit although it changes the function."""
        super().__init_subclass__(**options)
        defined = vars(cls)
        ours = cls.__module__.startswith("adagrad_diff.")
        if not ours and {"value", "apply", "prox"} & defined.keys():
            for name in ANSWERS - defined.keys():
                setattr(cls, name, vars(Penalty)[name])

    @abstractmethod
    def value(self, x: Any) -> Any:
        """phi(x): a number, or one per trajectory."""

    def prox(self, z: Any, step: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return the proximal point of z for positive steps, written into `out` (which may be z) if given."""
        z = point(self, z, "z")
        step = steps(step, z)
        if out is not None:
            check_out(out, z)
        result: np.ndarray = np.empty_like(z)
        self.apply(z, step, result)
        if out is None:
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

    # ------------------------------------------------------------ answers to other packages

    def quadratic_terms(self, size: int) -> QuadraticTerms | None:
        """Return phi as separable quadratic terms on `size` coordinates, or None if it is not of this form."""
        return None

    def box_hyperplane(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float] | None:
        """Return (lower, upper, a, beta) if phi is the indicator of a box and a'x = beta, else None."""
        return None

    def norm_part(self) -> Penalty | None:
        """Return the norm or seminorm with the same subgradients at 0, or None if there is none or it is unknown."""
        return self if {"norm", "seminorm"} & self.properties else None

    def null_space(self, size: int) -> np.ndarray:
        """Return a basis, one vector per column, of the points where a norm or seminorm is zero."""
        if "norm" not in self.properties:
            raise ValueError(f"The null space of {self.name} is not known.")
        return np.zeros((size, 0))

    def polar_inequalities(self, rows: Any, g: np.ndarray) -> tuple[Any, np.ndarray, int] | None:
        """Return (A, b, k) such that polar(g + rows v) <= t iff A (v, u, t) <= b for some u >= 0 with k entries.

        None if the polar is not the maximum of linear functions. `rows` is sparse.
        """
        return None

    @quiet
    def conjugate_bound(self, y: np.ndarray, e: np.ndarray) -> float:
        """Return an upper bound on phi* at all points within e of y, whatever rounding does.

        It is inf where phi* is not known to be finite. y and e are vectors.
        """
        if {"norm", "seminorm"} & self.properties:
            polar = float(self.polar(y)) * (1.0 + sum_rounding(y.size)) + float(self.polar(e))
            return 0.0 if polar <= 1.0 else np.inf
        value, size = self._conjugate_near(y, e)
        bound = float(value) + sum_rounding(y.size) * float(size)
        return bound if bound < np.inf else np.inf  # never NaN

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        """Return `conjugate_bound` but for the rounding of its sum, and the sum of the absolute values of its terms.

        By default both sides are tried, which is exact for functions of one coordinate.
        """
        values = [float(self.conjugate(point)) for point in (y, y + e, y - e)]
        return max(values), max(abs(value) for value in values)

    def polar_accuracy(self, size: int) -> float:
        """Return the relative rounding error of the polar of a vector of this size."""
        return sum_rounding(size)

    @property
    def strength_unit(self) -> float:
        """The strength `lam` if it is one positive number, else 1: the unit of `critical_lam`."""
        lam = np.ravel(getattr(self, "lam", 1.0))
        return float(lam[0]) if lam.size == 1 and lam[0] > 0 else 1.0

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


def known_at_zero(y: np.ndarray, e: np.ndarray) -> tuple[float, float]:
    """Return the answer of `_conjugate_near` if only phi*(0) = 0 is safe from rounding."""
    return (np.inf, np.inf) if y.any() or e.any() else (0.0, 0.0)


def conjugate_inside(penalty: Penalty, y: np.ndarray, e: np.ndarray) -> tuple[float, float]:
    """Return the answer of `_conjugate_near` for a penalty inside another one."""
    value = penalty.conjugate_bound(y, e)
    return value, abs(value)


class Norm(Penalty):
    """A norm (with strength 0, a seminorm). Subclasses write `value`, `apply` and `polar`."""

    properties = frozenset({"norm"})

    def conjugate(self, y: Any) -> Any:
        y = point(self, y, "y")
        return indicator(self.polar(y) <= 1.0 + tolerance(y.dtype))


class StrengthNorm(Norm):
    """A norm times one strength lam >= 0."""

    def __init__(self, lam: float):
        self.lam = _check.nonnegative(lam, "lam", self.name)


class RadiusSet(Penalty):
    """A set of vectors that are at most `radius` large in every coordinate, given by its support function."""

    properties = frozenset({"set"})

    def __init__(self, radius: float):
        self.radius = _check.nonnegative(radius, "radius", self.name)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        value = self.conjugate(y) + self.conjugate(e)  # subadditive, and e >= 0 is the worst of +-e
        return value, self.radius * (np.abs(y).sum() + e.sum())


def _needs_scalar(penalty: Penalty) -> str:
    return (
        f"{penalty.name} has no exact proximal operator in a metric with more than one weight. Use blocks='all' "
        "(and no scale), so that all coordinates share one step, or NumericalProx(penalty), which solves it by iteration."
    )


def scalar_step(penalty: Penalty, step: np.ndarray) -> np.ndarray:
    """Return the one step of a penalty that needs a scalar metric, shape (1,) or (1, B)."""
    if len(step) > 1 and (step != step[:1]).any():
        raise ValueError(_needs_scalar(penalty))
    return step[:1]


@quiet
def inner_prox(penalty: Penalty, z: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the prox of a penalty inside another one, whose steps may be too large or too small for the dtype of z."""
    limits = np.finfo(z.dtype)
    step = np.clip(step, limits.smallest_subnormal, limits.max).astype(z.dtype)
    if penalty.accepts != "scalar":
        step = np.broadcast_to(step, z.shape).copy()
    out = np.empty_like(z)
    penalty.apply(z, step, out)
    return out
