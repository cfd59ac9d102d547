"""The objective at exactly one point, with a bound on its rounding error.

Every reported objective, bound and gap is made here: `Certificate.at` combines F(x) of the x that is returned with a lower
bound on the optimum, which does not depend on x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite, nextafter
from typing import Any, NamedTuple

import numpy as np

from ..linalg import Block, Samples
from ..losses.linear import BinaryModel
from ._linear import LinearDual
from ._products import EPS, exact_sum, factor, largest, penalty_value, two_sum

NEGLIGIBLE_SHARE = (
    1e-6  # in units of its usual size: a smaller objective does not make a tolerance stricter
)
TINY_FLOAT = float(np.finfo(np.float64).tiny)
PROJECTION_STEP = (
    1e-30  # for which a prox is the projection onto the set where the penalty is finite
)
LARGE = 500_000  # entries of A above which ordinary sums are tried first: extended ones take ten times as long
ROUNDING_SHARE = 0.1  # of the accuracy asked for: the rounding error that ordinary sums may have
SUMMED_SAMPLES = 128  # samples whose losses are added up one after the other


def unit(fun: Any, usual: Any) -> Any:
    """Return what a tolerance on objectives is relative to: the objective, or a millionth of its usual size."""
    usual = NEGLIGIBLE_SHARE * usual
    return np.maximum(abs(fun), usual) if np.ndim(fun) else max(abs(fun), usual)


class Value(NamedTuple):
    """A number, and how far it may be off."""

    value: float
    error: float


@dataclass(frozen=True)
class Certificate:
    """What is known about x: F_star lies between `bound` and `fun`."""

    fun: float  # F(x), in double precision or better
    bound: (
        float  # a lower bound on F_star: the dual function at dual_point, less the rounding of fun
    )
    gap: float  # fun - bound, an upper bound on F(x) - F_star; inf if fun or bound is not finite
    dual_point: (
        np.ndarray | None
    )  # u, a slope of each scalar loss (for a quadratic function, a gradient)
    message: str = ""

    @property
    def relative(self) -> float:
        """gap / |F(x)|."""
        return self.gap / max(abs(self.fun), TINY_FLOAT) if self.gap < np.inf else np.inf

    @classmethod
    def at(cls, known: Value, value: float, point: np.ndarray | None = None) -> Certificate:
        """Return what an objective and a lower bound on the optimum prove, with rounding on the safe side."""
        fun, error = known
        if not (isfinite(fun) and isfinite(error) and isfinite(value)):
            return cls(fun, value if isfinite(error) else -inf, inf, point)
        bound = value - error - EPS * abs(fun - value)  # the last term is the rounding of the gap
        bound = nextafter(bound, -inf) if error else bound
        return cls(fun, bound, fun - bound if isfinite(fun - bound) else inf, point)


@np.errstate(all="ignore")  # what overflows proves nothing
def objective(dual: Any, x: np.ndarray, accuracy: float = 0.0) -> Value:
    """Return F(x) and how far it may be off.

    `accuracy` is the relative error of F(x) that matters, or zero for the best one.
    """
    x = np.ascontiguousarray(x, np.float64)
    known = _objective(dual, x, accuracy)
    part, penalty = (x[:-1] if dual.loss.intercept else x).reshape(-1), dual.penalty
    if "set" in penalty.properties or (dual.single and not float(penalty.value(part)) < inf):
        # Rounding may have moved x out of a set. What is proven holds for the nearest point of the set as well.
        inside = x.copy()
        (inside[:-1] if dual.loss.intercept else inside).reshape(-1)[...] = penalty.prox(
            part, PROJECTION_STEP
        )
        if not np.array_equal(inside, x):
            near = _objective(dual, inside, accuracy)
            known = Value(known.value, max(known.error, near.value + near.error - known.value))
    return known if isfinite(known.error) else Value(known.value, inf)


def _objective(dual: Any, x: np.ndarray, accuracy: float) -> Value:
    if not isinstance(dual, LinearDual):
        value: Value = dual.objective(x)
        return value
    opaque, known = dual.loss.A.opaque, Value(np.nan, inf)
    if opaque or (accuracy > 0 and dual.loss.A.size > LARGE):
        known = _of_linear_model(dual, x, extended=False)
    if opaque or known.error <= ROUNDING_SHARE * accuracy * abs(known.value):
        return known
    return _of_linear_model(dual, x, extended=True)


def _of_linear_model(dual: LinearDual, x: np.ndarray, extended: bool) -> Value:
    """Return F(x) of a linear model, with predictions in extended or in double precision.

    In double precision, a prediction is off by eps d times the sum of the sizes of its terms. The loss is off by that times its
    slope, or where that changes by the largest slope, and the sum of losses by N eps times the sum of their sizes.
    """
    loss, features = dual.loss, dual.loss.A.shape[1]
    like = replace(loss.samples(x.shape[1:]), b=np.empty(0), weight=np.empty(0))
    args, flat = (like, loss.translates), np.abs(x[:features].reshape(-1))
    unit, off, summed = 1.0, 0.0, factor(min(len(dual.b), SUMMED_SAMPLES))
    if extended:
        high, low, error = dual.matrix.dot(x[:features].reshape(features, -1))
        if loss.intercept:
            high, lost = two_sum(high, x[features:].reshape(1, -1))
            low = low + lost
        z = [part.reshape((len(high), *x.shape[1:])) for part in (high, low, error)]
        shares = loss.A.fold(_of_predictions, *args, along=(*z, loss.b, loss.weight), merge=_merged)
    else:
        shares = loss.A.fold(
            _of_block, x[:features], x[features:], *args, along=(loss.b, loss.weight), merge=_merged
        )
        # An operator computes in a precision of its own.
        unit = float(np.finfo(loss.dtype).eps) / EPS if loss.A.opaque else 1.0
        off = float(dual.sizes @ flat) + (largest(x[features:]) if loss.intercept else 0.0)
        off *= unit * dual.coarse
    sums, rounding, sizes, slope, margin = shares
    if dual.nonsmooth:
        slope = max(-float(dual.low.min()), float(dual.high.max()))
    # The latter is for Poisson's loss: exp(z) is a slope plus b.
    curvature = loss.smoothness or 1.0 + slope + largest(dual.b)
    rounding += (slope + curvature * off * len(dual.b)) * off + (summed + 16 * EPS) * sizes
    if not (extended and (loss.translates or isinstance(loss, BinaryModel))):
        rounding += unit * factor(x[:1].size) * (slope + dual.typical) * (margin + dual.typical)
    phi, square = penalty_value(dual, x[:features].reshape(-1)), 0.5 * loss.l2 * float(flat @ flat)
    rounding += factor(flat.size) * (square + (abs(phi) if phi < inf else 0.0))
    fun = exact_sum([*sums, square]) + phi
    return Value(fun, rounding + 4 * EPS * abs(fun))


def _of_block(
    block: Block,
    b: np.ndarray,
    weight: np.ndarray,
    x: np.ndarray,
    offset: np.ndarray,
    like: Samples,
    centered: bool,
) -> Any:
    z = np.empty((len(b), *x.shape[1:]))
    block.dot(x, z)
    if len(offset):
        z += offset
    return _of_predictions(block, z, 0.0, None, b, weight, like, centered)


def _of_predictions(
    block: Block,
    high: np.ndarray,
    low: Any,
    error: np.ndarray | None,
    b: np.ndarray,
    weight: np.ndarray,
    like: Samples,
    centered: bool,
) -> Any:
    """Return the losses, their rounding errors and sizes, the largest slope, and the mean size of predictions.

    By convexity, an error of a prediction multiplies at most the larger of the slopes on both sides.
    """
    z = (high - b) + low if centered else high + low
    b = (np.zeros(len(b)) if centered else b).astype(np.float64 if b.dtype.kind == "f" else b.dtype)
    weight, rounding = weight.astype(np.float64), 0.0
    margin = float(np.sum(weight * _largest(z), where=weight > 0))
    if error is not None:
        error = _largest(error + 4 * EPS * np.abs(z)).reshape(-1, *(1,) * (z.ndim - 1))
        step = 2.0 * error
        if z.ndim > 1:  # the worst case: the score of the sample's own class against all others
            step = np.where(np.arange(z.shape[1]) == b[:, None], -step, step)
        slopes = []
        for side in (z - step, z + step):
            replace(like, b=b, weight=weight, r=side).residuals()(0, len(b), np.zeros(like.width))
            slopes.append(np.abs(side))  # which has become weight * slope
        rounding = float(np.sum(np.maximum(*slopes) * error))
    residuals, sums = replace(like, b=b, weight=weight, r=z).residuals(), []
    for lo in range(0, len(b), SUMMED_SAMPLES):
        residuals(lo, min(lo + SUMMED_SAMPLES, len(b)), value := np.zeros(like.width))
        sums.append(float(value.sum()))
    steepest = np.divide(_largest(z), weight, out=np.zeros(len(z)), where=weight > 0)
    return sums, rounding, float(np.abs(sums).sum()), float(steepest.max(initial=0.0)), margin


def _largest(rows: np.ndarray) -> np.ndarray:
    """Return the largest size in each row."""
    sizes: np.ndarray = np.abs(rows)
    return sizes if rows.ndim == 1 else np.asarray(sizes.max(axis=1))


def _merged(one: Any, other: Any) -> Any:
    sums = [a + b for a, b in zip(one, other, strict=True)]
    sums[3] = max(one[3], other[3])
    return tuple(sums)
