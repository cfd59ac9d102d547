"""Coefficients that are all zero: the best intercept for them, and whether they are the solution."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..critical import _smallest_polar
from ..losses import LinearModel, Multinomial
from ..penalties import L1, ElasticNet, Penalty

SORTED = 500_000  # samples up to which the kinks are sorted, which takes several vectors of double precision
PROGRAM = 100_000  # kinks times features up to which a linear program looks for the best of many subgradients


def null_solution(loss: LinearModel, penalty: Penalty) -> np.ndarray | None:
    r"""x with zero coefficients and the best intercept, if it is optimal: -g in the subdifferential of the penalty at zero.

    None if it is not, or if the penalty does not say (it is no norm), or if it would take long to know.
    """
    if isinstance(penalty, ElasticNet):
        norm: Penalty = L1(penalty.l1)  # the ridge part has no slope at zero
    elif {"norm", "seminorm"} & penalty.properties:
        norm = penalty
    else:
        return None
    x = np.zeros(loss.shape)
    if loss.intercept:
        if loss.jump is not None and len(loss.b) > SORTED:
            return None  # the iteration will find out, in less memory
        offset = best_intercept(loss)
        if offset is None:
            return None
        x[-1] = offset
    x = x.astype(loss.dtype)
    slack = 1.0 + 64 * float(np.finfo(loss.dtype).eps)
    try:
        g, kinks = _gradient(loss, x)
        polar = float(norm.polar(-g))
        if polar <= slack:
            return x
        if 1 < kinks <= PROGRAM // loss.A.shape[1] and polar < np.inf:
            return x if _smallest_polar(loss, norm, x.astype(np.float64)) <= slack else None
    except ValueError:  # a polar, or the kinks, are not known
        return None
    return None


def best_intercept(loss: LinearModel) -> Any:
    """The minimiser over the intercept when all coefficients are zero; None if there is none."""
    weight = loss.weight.astype(np.float64)
    if isinstance(loss, Multinomial):
        share = np.bincount(loss.b, weights=weight, minlength=loss.classes)
        if (share == 0).any():
            return None
        offsets = np.log(share)
        return offsets - offsets.mean()
    if loss.jump is not None:
        left, right = loss.jump(loss.b, loss.theta)
        return balance(loss.b.astype(np.float64), left, right, weight)
    from scipy.optimize import brentq

    slope = lambda c: float(_residuals(loss, np.full(len(weight), c, loss.dtype)).sum(dtype=np.float64))  # noqa: E731
    reach = 1.0
    while not slope(-reach) < 0 < slope(reach):
        reach *= 8.0
        if reach > 1e12:
            return None
    return brentq(slope, -reach, reach, xtol=1e-15, rtol=1e-14)


def balance(kinks: np.ndarray, left: Any, right: Any, weight: np.ndarray) -> float | None:
    r"""The minimiser c of :math:`\sum_j w_j \max(l_j (c - k_j), r_j (c - k_j))`, the middle one if there are several.

    For the absolute loss it is a weighted median of the kinks.
    """
    left, right = (np.broadcast_to(np.asarray(s, dtype=np.float64), kinks.shape) * weight for s in (left, right))
    order = np.argsort(kinks, kind="stable")
    order = order[weight[order] > 0]
    # The slope to the right of the k-th kink.
    slopes = left[order].sum() + np.cumsum((right - left)[order])
    rounding = 1e-12 * (np.abs(left).sum() + np.abs(right).sum())
    if left[order].sum() > rounding or slopes[-1] < -rounding:
        return None
    first = int(np.argmax(slopes >= -rounding))
    c = kinks[order[first]]
    if abs(slopes[first]) <= rounding and first + 1 < len(order):  # flat up to the next kink
        later = kinks[order[first + 1 :]]
        ahead = later[later > c]
        c = 0.5 * (c + ahead[0]) if ahead.size else c
    return float(c)


def _residuals(loss: LinearModel, z: np.ndarray) -> np.ndarray:
    kernels.residuals(loss.scalar)(z, loss.b, loss.weight, loss.theta, 0, len(z), np.zeros(1))
    return z


def _gradient(loss: LinearModel, x: np.ndarray) -> tuple[np.ndarray, int]:
    """The gradient with respect to the coefficients, and how many samples are at a kink.

    Those have the same slope, such that the gradient with respect to the intercept is zero if possible.
    """
    if isinstance(loss, Multinomial):
        g = loss.value_and_grad(x)[1]
        return (g[:-1] if loss.intercept else g).ravel().astype(np.float64), 0
    if loss.jump is None and loss.smoothness is None and not loss.differentiable:
        raise ValueError(f"{type(loss).__name__} does not say where it has kinks.")
    offset = x[-1] if loss.intercept else loss.dtype.type(0)  # type: ignore[union-attr]
    r, kinks = _residuals(loss, np.full(len(loss.b), offset, loss.dtype)), np.zeros(0, np.intp)
    if loss.jump is not None:
        kinks = np.flatnonzero((loss.b == offset) & (loss.weight > 0))
        left, right = (np.broadcast_to(s, loss.b.shape)[kinks] for s in loss.jump(loss.b, loss.theta))
        r[kinks] = 0
        wanted = -r.sum(dtype=np.float64) / loss.weight[kinks].sum() if loss.intercept and kinks.size else 0.0
        r[kinks] = loss.weight[kinks] * np.clip(wanted, left, right)
    elif np.abs(r).max() <= 64 * np.finfo(r.dtype).eps * np.abs(loss.b * loss.weight).max():
        r[...] = 0  # a perfect fit, up to rounding
    g = np.empty(loss.A.shape[1], loss.dtype)
    loss.A.tdot(r, 0, len(r), g)
    return g.astype(np.float64), kinks.size
