"""The objective at exactly one point, in double precision or better, with a bound on its rounding error.

Every reported objective, bound and gap is made here: `Certificate.at` combines F(x) of the x that is returned with a lower
bound on the optimum, which does not depend on x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite, nextafter
from typing import Any

import numpy as np

from ..linalg import Block, Samples
from ..losses import Multinomial
from ._dual import LinearDual
from ._exact_multinomial import Classes
from ._extended import KINDS, Extended, Known, phi_of
from ._multinomial import MultinomialDual
from ._quadratic import QuadraticDual
from ._rounding import EPS, factor, largest

TINY_FLOAT = float(np.finfo(np.float64).tiny)
PROJECTION = 1e-30  # a step for which a prox is the projection onto the set where the penalty is finite, but for rounding
LARGE = 500_000  # entries of A above which sums of doubles are tried first: those of pairs of doubles take ten times as long
ROUNDING_SHARE = (
    0.1  # of the accuracy asked for: the rounding error of sums of doubles that is small enough
)


@dataclass(frozen=True)
class Certificate:
    """What is known about x: F_star lies between `bound` and `fun`."""

    fun: float  # F(x), in double precision or better
    bound: float  # a lower bound on F_star: the value of the dual function at dual_point, less the rounding of fun. (It may be
    # that of a pair of doubles for each sample, of which dual_point has the first.)
    gap: float  # F(x) is at most this far from the optimum: fun - bound; inf if fun or bound is not finite
    dual_point: (
        np.ndarray | None
    )  # u, a slope of each scalar loss (for a quadratic function, a gradient)
    message: str = ""

    @property
    def relative(self) -> float:
        """gap / |F(x)|."""
        return self.gap / max(abs(self.fun), TINY_FLOAT) if self.gap < np.inf else np.inf

    @classmethod
    def at(cls, known: Known, value: float, point: np.ndarray | None = None) -> Certificate:
        """Return what an objective and a lower bound on the optimum prove, with rounding on the safe side."""
        fun, error = known
        if not (isfinite(fun) and isfinite(error) and isfinite(value)):
            return cls(fun, -inf if not isfinite(error) else value, inf, point)
        bound = (
            value - error - EPS * abs(fun - value)
        )  # the last term is for the rounding of the gap
        bound = nextafter(bound, -inf) if error else bound
        return cls(fun, bound, fun - bound if isfinite(fun - bound) else inf, point)


def is_provable(dual: Any) -> bool:
    """Return whether this problem has formulas in pairs of doubles: a loss of ours, and entries of A that can be seen."""
    return (
        isinstance(dual, LinearDual)
        and type(dual.loss) in (*KINDS, Multinomial)
        and not dual.loss.A.opaque
    )


def in_pairs(dual: LinearDual) -> Any:
    """Return the problem with sums in pairs of doubles."""
    return Classes(dual) if isinstance(dual, MultinomialDual) else Extended(dual)


@np.errstate(all="ignore")  # what overflows proves nothing
def objective(dual: Any, x: np.ndarray, accuracy: float = 0.0) -> Known:
    """Return F(x) and how far it may be off.

    `accuracy` is the relative error of F(x) that matters, or zero. It only decides which of two ways is taken.
    """
    x = np.ascontiguousarray(x, np.float64)
    known = _objective(dual, x, accuracy)
    part, penalty = (x[:-1] if dual.loss.intercept else x).reshape(-1), dual.penalty
    if "set" in penalty.properties or (dual.single and not float(penalty.value(part)) < inf):
        # Rounding may have moved x out of a set. What is proven holds for the nearest point of the set as well.
        inside = x.copy()
        (inside[:-1] if dual.loss.intercept else inside).reshape(-1)[...] = penalty.prox(
            part, PROJECTION
        )
        if not np.array_equal(inside, x):
            near = _objective(dual, inside, accuracy)
            known = Known(known.value, max(known.error, near.value + near.error - known.value))
    return known if isfinite(known.error) else Known(known.value, inf)


def _objective(dual: Any, x: np.ndarray, accuracy: float) -> Known:
    if isinstance(dual, QuadraticDual):
        known = dual.objective(x)
    elif is_provable(dual):
        known = Known(np.nan, inf)
        if accuracy > 0 and dual.loss.A.size > LARGE:
            known = _in_doubles(dual, x)
        if not known.error <= ROUNDING_SHARE * accuracy * abs(known.value):
            known = in_pairs(dual).objective(x)
    else:
        known = _in_doubles(dual, x)
    return known


def _in_doubles(dual: LinearDual, x: np.ndarray) -> Known:
    """F(x) of a linear model by ordinary sums.

    A prediction is off by eps d times the sum of the sizes of its terms, and the loss by that times its slope, or where that
    changes by the largest slope. The sum of N losses is off by N eps times the sum of their sizes.
    """
    loss, features = dual.loss, dual.loss.A.shape[1]
    part = x[:features]
    nothing = np.empty(0)
    like = replace(loss.samples(x.shape[1:]), b=nothing, weight=nothing)
    shares = loss.A.fold(
        _share, part, x[features:], like, along=(loss.b, loss.weight), merge=_merged
    )
    total, sizes, slope, margin = shares.tolist()
    flat = np.abs(part.reshape(-1))
    offset = largest(x[features:]) if loss.intercept else 0.0
    unit = (
        float(np.finfo(loss.dtype).eps) / EPS if loss.A.opaque else 1.0
    )  # an operator computes in a precision of its own
    predictions = (
        float(dual.sizes @ flat) + offset
    )  # the weighted sum of the sizes of all terms of the predictions
    if dual.kinked:
        slope = max(-float(dual.low.min()), float(dual.high.max()))
    error = unit * dual.coarse * predictions
    curvature = loss.smoothness or 1.0 + slope + largest(
        dual.b
    )  # the latter for Poisson's: exp(z) is a slope plus b
    rounding = slope * error + curvature * error * error * len(dual.b) + dual.rounding * sizes
    rounding += unit * 8 * EPS * (slope + dual.typical) * (margin + dual.typical)
    phi, square = phi_of(dual, part.reshape(-1)), 0.5 * loss.l2 * float(flat @ flat)
    rounding += factor(flat.size) * (square + (abs(phi) if phi < inf else 0.0))
    fun = total + square + phi
    return Known(fun, rounding + 4 * EPS * abs(fun))


def _share(
    block: Block,
    b: np.ndarray,
    weight: np.ndarray,
    x: np.ndarray,
    offset: np.ndarray,
    like: Samples,
) -> np.ndarray:
    """The sum of the losses of one block and of their sizes, the largest slope, and the mean size of predictions."""
    z, weight = np.empty((len(b), *x.shape[1:])), weight.astype(np.float64)
    block.dot(x, z)
    z += offset if len(offset) else 0.0
    margin = float(np.sum(weight * _widest(z), where=weight > 0))
    samples = replace(
        like, b=b.astype(np.float64) if b.dtype.kind == "f" else b, weight=weight, r=z
    )
    samples.residuals()(0, len(b), value := np.zeros(samples.width))  # z becomes weight * slope
    slopes = np.divide(_widest(z), weight, out=np.zeros(len(z)), where=weight > 0)
    total = float(value.sum())
    return np.array([total, abs(total), float(slopes.max(initial=0.0)), margin])


def _widest(rows: np.ndarray) -> np.ndarray:
    """The largest size in each row."""
    sizes: np.ndarray = np.abs(rows)
    return sizes if rows.ndim == 1 else np.asarray(sizes.max(axis=1))


def _merged(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.array(
        [one[0] + other[0], one[1] + other[1], max(one[2], other[2]), one[3] + other[3]]
    )
