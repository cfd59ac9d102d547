"""What rounding can do to a bound: the sizes of the terms that are added up, and conjugates that hold nearby too.

A product A'(w u) in double precision is off by at most a few N eps sum_j w_j |a_ji| |u_j| in coordinate i. Bounds are made for
whatever is within that of the computed numbers.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from ..penalties import (
    PSD,
    Affine,
    Box,
    BoxHyperplane,
    ElasticNet,
    HuberPenalty,
    Hyperplane,
    L1Ball,
    L2Ball,
    Monotone,
    NumericalProx,
    Penalty,
    Precomposed,
    Scaled,
    Separable,
    Simplex,
    Translated,
)

EPS = float(np.finfo(np.float64).eps)
PROX = 1e-13  # relative accuracy of a proximal operator in closed form


def factor(count: int) -> float:
    """Twice the relative error that a sum of so many products in double precision can have, in whatever order it is taken."""
    return (count + 8) * EPS


def largest(values: Any) -> float:
    """The largest absolute value."""
    return max(float(np.max(values)), -float(np.min(values)))


def accuracy(penalty: Any) -> float:
    """The relative accuracy of a penalty's prox."""
    inner = [p for _, p in getattr(penalty, "parts", [])] + [
        p for p in [getattr(penalty, "penalty", None)] if p is not None
    ]
    return max([getattr(penalty, "accuracy", PROX), *map(accuracy, inner)])


def conjugate_above(penalty: Penalty, y: np.ndarray, e: np.ndarray) -> float:
    """At least phi* at every point within e of y, coordinate by coordinate; inf where that is not known to be finite."""
    if {"norm", "seminorm"} & penalty.properties:
        return (
            0.0
            if float(penalty.polar(y)) * (1.0 + factor(y.size)) + float(penalty.polar(e)) <= 1.0
            else np.inf
        )
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # of a ridge next to nothing: then it is infinite
        value, terms = _above(penalty, y, e)
        value = float(value) + factor(y.size) * float(terms)
    return value if value < np.inf else np.inf  # never NaN


@singledispatch
def _above(penalty: Any, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    """The bound but for the rounding of its terms, and the sum of their sizes. Of a user's penalty, both sides are tried."""
    values = [float(penalty.conjugate(point)) for point in (y, y + e, y - e)]
    return max(values), max(abs(value) for value in values)


@_above.register
def _(penalty: Box, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    ends = []
    for point in (y + e, y - e):  # convex in each coordinate: the largest value is at an end
        bound = np.where(point > 0, penalty.upper, penalty.lower)
        ends.append(np.multiply(bound, point, out=np.zeros_like(point), where=point != 0))
    values = np.maximum(*ends)
    return values.sum(), np.abs(values).sum()


@_above.register(L1Ball)
@_above.register(L2Ball)
@_above.register(Simplex)
def _(penalty: Any, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    value = penalty.conjugate(y) + penalty.conjugate(
        e
    )  # support functions are subadditive; e >= 0 is the worst of +-e
    return value, penalty.radius * (np.abs(y).sum() + e.sum())


@_above.register
def _(penalty: BoxHyperplane, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    reach = np.broadcast_to(np.maximum(np.abs(penalty.lower), np.abs(penalty.upper)), y.shape)
    if not np.isfinite(reach).all():
        return _unknown(y, e)
    unit = np.abs(penalty.a).max() or 1.0  # of the equation, which may be multiplied by any number
    a, beta = np.abs(penalty.a / unit), abs(penalty.beta / unit)
    slope = np.abs(np.divide(y, a, out=np.zeros_like(y), where=a != 0)).max()
    terms = reach @ (np.abs(y) + slope * a) + slope * beta
    return penalty.conjugate(y) + reach @ e, terms


@_above.register
def _(penalty: ElasticNet, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    excess = np.maximum(np.abs(y) + e - penalty.l1, 0.0)
    if np.any((excess > 0) & (penalty.l2 == 0)):
        return np.inf, np.inf
    value = np.sum(
        np.divide(excess, 2.0 * penalty.l2, out=np.zeros_like(excess), where=excess > 0) * excess
    )
    # The difference |y| - l1 has rounding of its own.
    return value, value + np.sum(
        np.divide(excess * penalty.l1, penalty.l2, out=np.zeros_like(excess), where=excess > 0)
    )


@_above.register
def _(penalty: HuberPenalty, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    size = np.abs(y) + e
    if np.any(size > penalty.lam * penalty.delta):
        return np.inf, np.inf
    value = np.sum(size * (size / (2.0 * penalty.lam))) if penalty.lam else 0.0
    return value, value


@_above.register
def _(penalty: Scaled, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    factor = 1.0 if "set" in penalty.properties else penalty.factor
    value, terms = _near(penalty.penalty, y / factor, e / factor)
    return factor * value, factor * terms


@_above.register
def _(penalty: Translated, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    value, terms = _near(penalty.penalty, y, e)
    size = np.sum(np.abs(penalty.shift) * (np.abs(y) + e))
    return value + np.sum(penalty.shift * y) + np.sum(np.abs(penalty.shift) * e), terms + size


@_above.register
def _(penalty: Precomposed, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    return _near(penalty.penalty, y / penalty.diagonal, e / np.abs(penalty.diagonal))


@_above.register
def _(penalty: NumericalProx, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    return _near(penalty.penalty, y, e)


@_above.register
def _(penalty: Separable, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    _, pairs, rest = penalty.plan(y.size)
    parts = [_near(part, y[where], e[where]) for where, part in pairs] + [
        _unknown(y[rest], e[rest])
    ]
    return sum(value for value, _ in parts), sum(terms for _, terms in parts)


@_above.register(Hyperplane)
@_above.register(Affine)
@_above.register(Monotone)
@_above.register(PSD)
def _(penalty: Any, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
    return _unknown(
        y, e
    )  # equations that rounding does not fulfil, and no bound on x that would limit the damage


def _near(penalty: Penalty, y: np.ndarray, e: np.ndarray) -> tuple[float, float]:
    value = conjugate_above(penalty, y, e)
    return value, abs(value)


def _unknown(y: np.ndarray, e: np.ndarray) -> tuple[float, float]:
    """Zero at zero, and nothing is known elsewhere."""
    return (np.inf, np.inf) if y.any() or e.any() else (0.0, 0.0)
