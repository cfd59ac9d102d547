"""Coefficients that are all zero: with the best intercept they are where a fit starts, and often where it ends."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from ..duality import Certifier, LinearDual, dual_of, unit
from ..duality.intercept import best_intercept
from ..duality.subgradients import smallest_polar
from ..losses import LinearModel
from ..penalties import Penalty

SORTED = (
    500_000  # samples up to which kinks are sorted, which takes several vectors of double precision
)
CLEARLY = 100.0  # how many times the tolerance an improvement must be to need no second look
PROGRAM = 100_000  # kinks times features up to which a linear program looks for the best of many subgradients


def null_point(loss: LinearModel) -> np.ndarray:
    """Zero coefficients and the best intercept; with very many samples at kinks, or if there is none best, a rough one."""
    x = np.zeros(loss.shape, loss.dtype)
    if loss.intercept:
        many = loss.piecewise_linear and len(loss.b) > SORTED
        offset = None if many else best_intercept(loss)
        if offset is None and loss.translates:
            offset = np.einsum("i,i->", loss.weight, loss.b, dtype=np.float64)
        if offset is not None:
            x[-1] = offset
    return x


def null_gap(
    loss: LinearModel, penalty: Penalty, x: np.ndarray, tol: float, program: bool
) -> tuple[float, float] | None:
    """(F, a proven gap) of the null point x, if the gap is small enough for tol.

    None if it is not, or if the penalty is no norm (then zeros are hardly ever optimal), or if it would take long to know. With
    `program`, a linear program may be solved for it, which the finish does as well.
    """
    norm = penalty.norm_part()
    if norm is None:
        return None
    oracle, g = loss.oracle(x), np.empty_like(x)
    fun = float(oracle(x, g))  # such a penalty is zero there
    if _surely_lower(loss, penalty, x, g, fun, tol):
        return None
    dual = dual_of(loss, penalty)
    if not isinstance(dual, LinearDual):
        return None
    certifier = Certifier(dual)
    r: Any = dual.residuals(oracle, None)
    kinks = _balance_kinks(loss, x, r) if loss.piecewise_linear else 0

    certifier.accuracy = tol

    def gap(r: Any) -> float:
        certifier.update(dual.value(dual.multipliers(r)))
        return certifier.certificate(x).gap

    enough = tol * unit(fun, certifier.scale)
    if gap(r) > enough and program and 1 < kinks <= PROGRAM // loss.A.shape[1]:
        with suppress(ValueError):  # the best subgradient is not known
            gap(smallest_polar(loss, norm, x.astype(np.float64))[1])
    found = certifier.certificate(x)
    return (found.fun, found.gap) if found.gap <= enough else None


@np.errstate(all="ignore")  # what overflows is not lower
def _surely_lower(
    loss: LinearModel, penalty: Penalty, x: np.ndarray, g: np.ndarray, fun: float, tol: float
) -> bool:
    """Whether a step from the null point lowers the objective by far more than tol: then there is nothing to prove.

    Mostly it does, and one step costs a tenth of looking for a proof. Its length is Newton's for a loss of that curvature.
    """
    step, features = g.copy(), loss.A.shape[1]
    step[features:] = 0.0
    z = loss.predict(step)
    if loss.intercept:
        step[features:] = -(loss.weight @ z)
        z = z + step[features:]
    curvature = loss.smoothness or 1.0 / abs(fun) if fun else 1.0
    length = float(np.square(g[:features]).sum() / (curvature * (loss.weight @ z**2).sum()))
    if not 0 < length < np.inf:
        return False
    trial = np.ascontiguousarray(x - length * step, dtype=x.dtype)
    part = trial[:features].reshape(-1)  # a view
    penalty.check_size(part.size)
    part[...] = penalty.prox(part, length)
    lower = float(loss.oracle(trial)(trial, np.empty_like(trial))) + float(penalty.value(part))
    return bool(fun - lower > CLEARLY * tol * abs(fun))


def _balance_kinks(loss: LinearModel, x: np.ndarray, r: np.ndarray) -> int:
    """How many samples are at a kink; they get one slope, such that the slope of the intercept is zero if possible."""
    kinks = loss.at_nonsmooth_points(np.full_like(loss.b, x[-1] if loss.intercept else 0.0))
    left, right = (np.broadcast_to(s, loss.b.shape)[kinks] for s in loss.slopes(loss.b, loss.theta))
    r[kinks] = 0
    wanted = (
        -r.sum(dtype=np.float64) / loss.weight[kinks].sum()
        if loss.intercept and kinks.size
        else 0.0
    )
    r[kinks] = loss.weight[kinks] * np.clip(wanted, left, right)
    return kinks.size
