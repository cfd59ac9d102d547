"""Coefficients that are all zero: with the best intercept they are where a fit starts, and often where it ends."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from ..certificates import Certifier, LinearDual, dual_of
from ..certificates.intercept import best_intercept
from ..certificates.subgradients import smallest_polar
from ..common.tolerance import unit
from ..losses import LinearModel
from ..penalties import L1, ElasticNet, Penalty

SORTED = 500_000  # samples up to which kinks are sorted, which takes several vectors of double precision
PROGRAM = 100_000  # kinks times features up to which a linear program looks for the best of many subgradients


def null_point(loss: LinearModel) -> np.ndarray:
    """Zero coefficients and the best intercept; with very many samples at kinks, or if there is none best, a rough one."""
    x = np.zeros(loss.shape, loss.dtype)
    if loss.intercept:
        many = loss.jump is not None and len(loss.b) > SORTED
        offset = None if many else best_intercept(loss)
        if offset is None and loss.translates:
            offset = np.einsum("i,i->", loss.weight, loss.b, dtype=np.float64)
        if offset is not None:
            x[-1] = offset
    return x


def null_gap(loss: LinearModel, penalty: Penalty, x: np.ndarray, tol: float) -> tuple[float, float] | None:
    """(F, a proven gap) of the null point x, if the gap is small enough for tol.

    None if it is not, or if the penalty is no norm (then zeros are hardly ever optimal), or if it would take long to know.
    """
    if isinstance(penalty, ElasticNet):
        norm: Penalty = L1(penalty.l1)  # the ridge part has no slope at zero
    elif {"norm", "seminorm"} & penalty.properties:
        norm = penalty
    else:
        return None
    dual = dual_of(loss, penalty)
    if not isinstance(dual, LinearDual):
        return None
    oracle, certifier = loss.oracle(x), Certifier(dual)
    fun = float(oracle(x, np.empty_like(x)))  # such a penalty is zero there
    r: Any = dual.residuals(oracle, None)
    kinks = _balance_kinks(loss, x, r) if loss.jump is not None else 0

    def gap(r: Any) -> float:
        certifier.offer(*dual.value(dual.multipliers(r)))
        certifier.measure(x, r)
        return float(certifier.gap(fun))

    enough = tol * unit(fun, certifier.scale)
    if gap(r) > enough and 1 < kinks <= PROGRAM // loss.A.shape[1]:
        with suppress(ValueError):  # the best subgradient is not known
            gap(smallest_polar(loss, norm, x.astype(np.float64))[1])
    return (fun, float(certifier.gap(fun))) if certifier.gap(fun) <= enough else None


def _balance_kinks(loss: LinearModel, x: np.ndarray, r: np.ndarray) -> int:
    """How many samples are at a kink; they get one slope, such that the slope of the intercept is zero if possible."""
    kinks = loss.at_kinks(np.full_like(loss.b, x[-1] if loss.intercept else 0.0))
    left, right = (np.broadcast_to(s, loss.b.shape)[kinks] for s in loss.jump(loss.b, loss.theta))
    r[kinks] = 0
    wanted = -r.sum(dtype=np.float64) / loss.weight[kinks].sum() if loss.intercept and kinks.size else 0.0
    r[kinks] = loss.weight[kinks] * np.clip(wanted, left, right)
    return kinks.size
