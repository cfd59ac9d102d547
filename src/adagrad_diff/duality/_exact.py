r"""A proof that can be trusted at 1e-12, of an exact solver's answer: F(x) and D(u) in twice the working precision.

What is given is x, optimal to rounding, and its dual point u, feasible to rounding. u is corrected (see `_correct`) to
u + low, a pair of doubles, which is feasible up to about 1e-28 of the size of a column. What is left of that is

- scaled away where the penalty is a norm: it costs 1e-28 / lam;
- for an intercept alone, mixed away: some (1 - t) u + t q is balanced exactly, q being an end of the domain;
- for other equations (columns without a penalty) removed by a change that exists because columns are independent. Columns that
  are a simple combination of others, which is verified exactly, need nothing: theirs follow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._correct import MOST_VIOLATED, DualPoint, corrected
from ._dependence import follow
from ._dual import LinearDual
from ._exact_multinomial import Classes, ClassesPoint
from ._extended import Known
from ._objective import LARGE, Certificate, in_pairs, is_provable, objective
from ._rounding import EPS

LOOSE = 1e-6  # a tolerance for which ordinary sums may do
INNER = 1e-14, 1e-12  # the parts of the way to the middle of the domain of l* that are tried


class Proof(NamedTuple):
    """F(x) is `fun` up to `error`, and F_star is at least `value`."""

    fun: float
    error: float
    value: float
    point: np.ndarray | None  # the dual point, to double precision

    @property
    def gap(self) -> float:
        """F(x) - F_star is at most this; infinite if nothing is known."""
        return Certificate.at(Known(self.fun, self.error), self.value).gap


@np.errstate(all="ignore")  # what overflows proves nothing
def prove(dual: Any, x: np.ndarray, u: np.ndarray | None, tol: float) -> Proof:
    """What is known about x: with ordinary sums if that is enough for a relative gap of tol, else with exact ones.

    `dual` is what `dual_of` gives, and u are slopes of the scalar losses (None for a quadratic function).
    """
    fun, error = objective(dual, x, tol)
    if u is None or not is_provable(dual):
        return Proof(fun, error, *_ordinary_bound(dual, x, u))
    enough = fun - error - tol * abs(fun)
    if tol >= LOOSE and not dual.single and dual.loss.A.size > LARGE:
        ordinary = _ordinary_bound(dual, x, u)
        if ordinary[0] >= enough:
            return Proof(fun, error, *ordinary)
    return Proof(fun, error, *lower_bound(dual, u, enough))


def _point(dual: LinearDual, u: np.ndarray, inner: float = 0.0) -> Any:
    problem = in_pairs(dual)
    return (
        ClassesPoint(problem, u) if isinstance(problem, Classes) else ScalarPoint(problem, u, inner)
    )


def _ordinary_bound(dual: Any, x: np.ndarray, u: np.ndarray | None) -> tuple[float, np.ndarray]:
    """A lower bound on F_star by ordinary sums, as a run finds it."""
    x = np.ascontiguousarray(x, dual.loss.dtype)
    oracle, g = dual.loss.oracle(x), np.empty_like(x)
    oracle(x, g)
    # The slopes of a smooth loss at x are its residuals, whose product with A is the gradient.
    same = u is None or not (dual.kinked or dual.single)
    bound: tuple[float, np.ndarray] = (
        dual.bound(x, g, dual.residuals(oracle, None)) if same else dual.value(u.astype(np.float64))  # type: ignore[union-attr]
    )
    return bound


@np.errstate(all="ignore")
def lower_bound(
    dual: LinearDual, u: np.ndarray, enough: float = np.inf
) -> tuple[float, np.ndarray]:
    """(at least D at a feasible point near u, the point): without corrections if that is enough."""
    point = _point(dual, u)
    best = (-np.inf, point.u) if point.equal[: dual.loss.A.shape[1]].any() else point.value()
    # At a degenerate vertex few samples have room: then from a little inside.
    for inner in (0.0, *(INNER if dual.kinked else ())):
        if best[0] < enough:
            point = _point(dual, u, inner) if inner else point
            point.correct()
            best = max(best, point.value(), key=_first)
    if best[0] < enough:  # perhaps in the way of a run
        best = max(best, dual.value(u.astype(np.float64)), key=_first)
    return best


@np.errstate(all="ignore")
def corrected_bound(dual: LinearDual, u: np.ndarray) -> tuple[float, np.ndarray]:
    """The same for a point that need not be near the best one: moved into the dual set, not scaled."""
    if not is_provable(dual):
        return -np.inf, u
    point = _point(dual, u)
    point.correct()
    value: tuple[float, np.ndarray] = point.value()
    return value


def _first(pair: tuple[float, np.ndarray]) -> float:
    return pair[0]


class ScalarPoint(DualPoint):
    """A dual point of a linear model, and what it proves."""

    def correct(self) -> None:
        corrected(self)

    def value(self) -> tuple[float, np.ndarray]:
        """(a lower bound on D at a feasible point near this one, a double for each sample of that)."""
        return _value(self)


def _value(point: DualPoint) -> tuple[float, np.ndarray]:
    """(a lower bound on D at a feasible point near this one, a double for each sample of that)."""
    problem = point.problem
    dual, loss, features = problem.dual, problem.loss, problem.features
    if not np.all(point.slack() >= 0):  # or NaN
        return -np.inf, point.u
    conjugates = problem.conjugates(point.u, point.low)
    v, e = (
        point.v[0, :features].copy(),
        point.error()[:features] + EPS * np.abs(point.v[0, :features]),
    )
    equal, cost = point.equal[:features], 0.0
    if equal.any():
        cost, moved = _equations(point)
        if not np.isfinite(cost):
            return -np.inf, point.u
        v[equal] = e[equal] = 0.0
        e += np.where(equal, 0.0, dual.sizes * moved) if moved and not equal.all() else 0.0
    elif loss.intercept:
        part, far, cost = _balance(point, conjugates)
        e += part * far * dual.sizes if part else 0.0
    theta, psi = dual.entered(v, e)
    if not theta > 0:
        return -np.inf, point.u
    rest = 0.0
    if theta < 1:  # l*(theta u) <= theta l*(u) + (1 - theta) l*(0)
        zero = problem.conjugates(np.zeros(point.u.size), np.zeros(point.u.size))
        rest = (1.0 - theta) * (zero.value + zero.error)
    total = theta * (conjugates.value + conjugates.error) + rest + cost + psi
    rounding = 8 * EPS * (abs(conjugates.value) + abs(psi) + abs(rest) + cost)
    value = -total - rounding
    return (float(value) if np.isfinite(value) else -np.inf), theta * point.u


def _balance(point: DualPoint, conjugates: Known) -> tuple[float, float, float]:
    """(t, how far a sample moves for t = 1, what it costs): some (1 - t) u + t q is balanced exactly."""
    dual, v = point.problem.dual, point.v[:, -1]
    excess = abs(v[0]) + abs(v[1]) + float(point.error()[-1])
    room, far, cost = dual._ends
    part = excess / (excess + room) if excess else 0.0
    cost += abs(dual.center) * far * 2.0  # it is that of targets which are centered
    return part, dual.size(point.u) + far, part * max(cost - conjugates.value, 0.0) * (1.0 + 1e-9)


def _equations(point: DualPoint) -> tuple[float, float]:
    """(what a change costs that makes v zero where it must be, how far it moves a sample); inf if none is known."""
    chosen, problem = np.flatnonzero(point.equal), point.problem
    off = np.abs(point.v[0, chosen]) + np.abs(point.v[1, chosen]) + point.error()[chosen]
    if not off.any():
        return 0.0, 0.0
    system = point.system(chosen) if chosen.size <= MOST_VIOLATED else None
    if system is None or not (least := system.smallest()) > 0:
        return np.inf, np.inf
    here, room = system.movable, point.slack()[system.movable.samples]
    distance = (
        float(np.linalg.norm((off / system.sizes)[system.independent])) / least * (1.0 + 1e-6)
    )
    if np.any(system.lever * distance > 0.5 * room):
        return np.inf, np.inf
    if not follow(problem, here, chosen[system.independent], chosen[system.dependent]):
        return np.inf, np.inf
    # The conjugates are convex: what a part of the way costs is at most that part of what all of it costs.
    loss, u, b = problem.loss, point.u[here.samples], problem.b[here.samples]
    radius, at = 0.5 * room, loss.conjugate(u, b, loss.theta)
    there = np.maximum(*(loss.conjugate(u + side * radius, b, loss.theta) for side in (-1.0, 1.0)))
    slopes = (np.maximum(there - at, 0.0) + 1e-9 * (np.abs(at) + np.abs(there))) / radius
    size = float(np.sqrt(np.sum(here.weight * here.room * slopes**2)))
    return distance * size * (1.0 + 1e-6), float(np.max(system.lever)) * distance
