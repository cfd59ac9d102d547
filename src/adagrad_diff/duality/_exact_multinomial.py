"""The same proof for the multinomial loss: u has one column per class, and u + (1 at the sample's class) are probabilities.

Rows of u sum to zero, so corrections must: what one class needs on a column is taken from the class that can best spare it.
Every class has the same columns of A, and so one least squares problem serves all.
"""

from __future__ import annotations

from functools import cached_property
from math import fsum
from typing import Any

import numpy as np

from ._correct import (
    CORRECTIONS,
    DUST,
    EQUATION_DUST,
    INSIDE,
    LITTLE_ROOM,
    MOST_VIOLATED,
    Factor,
    factor_of,
)
from ._dependence import follow
from ._extended import (
    PAIR_ROUNDING,
    UNDERFLOW,
    Known,
    add_pairs,
    added,
    dot,
    dots,
    penalty_value,
    tdot,
    tdots,
    two_sum_arrays,
    weighted,
)
from ._limits import limits, shrunk_groups
from ._rounding import EPS

ROW_ROUNDING = 2.0**-98  # how far rows of u may be from summing to zero


class Classes:
    """A multinomial model whose sums are pairs of doubles."""

    def __init__(self, dual: Any):
        self.dual, self.loss = dual, dual.loss
        self.weight, self.labels = self.loss.weight.astype(np.float64), self.loss.b
        self.samples, self.features = self.loss.A.shape
        self.classes = self.loss.classes

    @cached_property
    def indicators(self) -> np.ndarray:
        """1 at the class of each sample."""
        return np.asarray(np.arange(self.classes) == self.labels[:, None], np.float64)

    def objective(self, x: np.ndarray) -> Known:
        """F(x)."""
        loss, part, used = self.loss, np.asarray(x[: self.features], np.float64), self.weight > 0
        z = np.zeros((3, self.samples, self.classes))
        for c in range(self.classes):
            column = np.zeros((3, self.samples))
            if loss.intercept:
                column[0], column[2] = x[-1, c], abs(x[-1, c])
            z[:, :, c] = dots(loss.A, np.ascontiguousarray(part[:, c]), column)
        place = (np.arange(self.samples), np.argmax(z[0], axis=1))
        away, lost = two_sum_arrays(z[0], -z[0][place][:, None])
        away = away + (lost + (z[1] - z[1][place][:, None]))  # from the largest score
        others = np.exp(away)
        others[place] = 0.0
        log = np.log1p(others.sum(axis=1))
        own = np.abs(away[np.arange(self.samples), self.labels])
        values = log + own
        unseen = (self.features + 8) ** 2 * PAIR_ROUNDING * z[2].max(
            axis=1
        ) + self.features * UNDERFLOW * bool(part.any())
        errors = (8.0 + self.classes) * EPS * (
            log + own + np.sum(others * np.abs(away), axis=1)
        ) + 2.0 * unseen
        total = fsum((self.weight * values)[used])
        error = float(np.sum((self.weight * errors)[used])) + 2.0 * EPS * total
        flat = np.ascontiguousarray(part.reshape(-1))
        parts = [(total, 0.0, error), penalty_value(self.dual, flat)]
        if loss.l2:
            s, more, m = dot(flat, flat)
            parts.append((0.5 * loss.l2 * s, 0.5 * loss.l2 * more, EPS * loss.l2 * m))
        return added(parts)


class ClassesPoint:
    """u + low with rows that sum to zero, and v = A'(w (u + low)), with the sums of w u for an intercept."""

    def __init__(self, problem: Classes, u: np.ndarray):
        self.problem, loss = problem, problem.loss
        p = np.maximum(u.astype(np.float64) + problem.indicators, 0.0)
        p /= p.sum(axis=1, keepdims=True)
        self.u = p - problem.indicators
        self.u[problem.weight == 0] = 0.0
        self.low = np.zeros(self.u.shape)
        self._rows_to_zero()
        size = problem.features + loss.intercept
        self.v = np.zeros((3, size, problem.classes))
        self.add(None, np.arange(problem.samples), self.u, self.low)
        size = problem.features * problem.classes
        self.terms = problem.dual.penalty.quadratic_terms(size)
        low, high = (end.reshape(problem.features, -1) for end in limits(self.terms, loss.l2, size))
        if loss.intercept:
            low, high = (np.vstack([end, np.zeros((1, problem.classes))]) for end in (low, high))
        self.ends = low, high
        self.equal = (low == high).all(axis=1)
        self.mixed = bool((low == high)[~self.equal].any())  # equations of some classes only
        self._system: Factor | None = None

    def _rows_to_zero(self) -> None:
        """The class with the largest probability makes up for what rounding has left of a row's sum."""
        place = np.arange(len(self.u)), np.argmax(self.probabilities()[0], axis=1)
        s = c = np.zeros(len(self.u))
        for k in range(self.u.shape[1]):
            s, e = two_sum_arrays(s, self.u[:, k])
            c = c + (e + self.low[:, k])
        self.low[place] -= s + c
        self.u, self.low = two_sum_arrays(self.u, self.low)

    def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """p as a pair."""
        p, e = two_sum_arrays(self.problem.indicators, self.u)
        return p, e + self.low

    def add(self, rows: Any, samples: np.ndarray, u: np.ndarray, low: np.ndarray) -> None:
        """v += A'(w (u + low)) over some samples, whose rows of A these are; None: over all."""
        problem, weight = self.problem, self.problem.weight[samples]
        for c in range(problem.classes):
            r, rest = weighted(weight, u[:, c], low[:, c])
            column, features = np.ascontiguousarray(self.v[:, :, c]), problem.features
            sums = tdots(problem.loss.A, r, rest) if rows is None else tdot(rows, r, rest)
            column[:, :features] = add_pairs(column[:, :features], sums)
            if problem.loss.intercept:
                total, more, m = dot(np.ones(r.size), r)
                column[0, -1:], lost = two_sum_arrays(column[0, -1:], np.array([total]))
                column[1:, -1] += lost[0] + more + rest.sum(), m
            column[0], column[1] = two_sum_arrays(column[0], column[1])
            self.v[:, :, c] = column

    def error(self) -> np.ndarray:
        """Of v: of its sums, and because rows sum to zero but for rounding."""
        problem = self.problem
        error = (problem.samples + 16) ** 2 * PAIR_ROUNDING * self.v[
            2
        ] + problem.samples * UNDERFLOW
        sizes = problem.dual.sizes.reshape(problem.features, -1)
        error[: problem.features] += ROW_ROUNDING * sizes
        error[problem.features :] += ROW_ROUNDING
        return np.asarray(error)

    def system(self, chosen: np.ndarray) -> Factor | None:
        """The equations of some columns on the samples with the most room; None if there are none."""
        if self._system is None or not np.array_equal(self._system.chosen, chosen):
            room = self.probabilities()[0].min(axis=1)
            room[(room < LITTLE_ROOM * room.max()) | (self.problem.weight == 0)] = 0.0
            self._system = factor_of(self.problem, room, chosen)
        return self._system

    def missing(self) -> tuple[np.ndarray, np.ndarray]:
        """What to add to v, with rows that sum to zero, and the columns that need something."""
        (low, high), v, error, features = self.ends, self.v, self.error(), self.problem.features
        size = np.maximum(-low, high)
        need = 2.0 * error + DUST * v[2] + INSIDE * np.where(size < np.inf, size, 0.0)
        above, below = (v[0] - high) + v[1], (low - v[0]) - v[1]
        over, under = above + need > 0, below + need > 0
        missing = np.where(over, -(above + 2.0 * need), np.where(under, below + 2.0 * need, 0.0))
        if not self.problem.loss.l2:
            flat = v[0, :features].reshape(-1)
            missing[:features] += (shrunk_groups(self.terms, flat, 2.0 * INSIDE) - flat).reshape(
                features, -1
            )
        spare = np.argmin(np.where(missing == 0, np.abs(v[0]), np.inf), axis=1)
        missing[np.arange(len(missing)), spare] -= missing.sum(axis=1)
        missing[self.equal] = below[self.equal]
        wrong = np.where(
            self.equal[:, None], np.abs(below) > error + EQUATION_DUST * v[2], missing != 0
        ).any(axis=1)
        return missing, wrong

    def correct(self) -> None:
        """Move the point into the domain of the penalty's conjugate, as far as that is possible."""
        chosen = np.zeros(self.equal.size, bool)
        for _ in range(CORRECTIONS):
            missing, wrong = self.missing()
            if not wrong.any():
                return
            chosen |= wrong
            system = (
                self.system(np.flatnonzero(chosen))
                if np.count_nonzero(chosen) <= MOST_VIOLATED
                else None
            )
            if system is None:
                return
            change = np.stack([system.change(column) for column in missing[chosen].T], axis=1)
            samples = system.movable.samples
            far = float(np.max(np.abs(change) / self.probabilities()[0][samples]))
            if not far < np.inf:
                return
            change *= min(1.0, 0.5 / far) if far else 1.0
            u, low = self.u.copy(), self.low.copy()
            high, lost = two_sum_arrays(self.u[samples], change)
            self.u[samples], self.low[samples] = two_sum_arrays(high, self.low[samples] + lost)
            self._rows_to_zero()
            moved, rest = two_sum_arrays(self.u[samples], -u[samples])
            self.add(system.movable.rows, samples, moved, rest + (self.low[samples] - low[samples]))

    # ------------------------------------------------------------ the value

    def conjugates(self) -> Known:
        """sum_j w_j sum_c p log p"""
        p, e = self.probabilities()
        used = (self.problem.weight > 0)[:, None] & ((p != 0) | (e != 0))
        if np.any(used & ((p <= 0) | (np.abs(e) > 0.5 * p))):
            return Known(np.inf, 0.0)
        weight, q, f = (
            np.broadcast_to(self.problem.weight[:, None], p.shape)[used],
            p[used],
            e[used],
        )
        logs = np.log(q)
        total = fsum(weight * (q * logs)) + fsum(weight * ((1.0 + logs) * f))
        error = float(
            np.sum(
                weight
                * (4.0 * EPS * (np.abs(q * logs) + np.abs((1.0 + np.abs(logs)) * f)) + f * f / q)
            )
        )
        return Known(total, 2.0 * error + 2.0 * EPS * abs(total))

    def value(self) -> tuple[float, np.ndarray]:
        """(a lower bound on D at a feasible point near this one, a double for each entry of that)."""
        problem, nothing = self.problem, (-np.inf, self.u)
        dual, features = problem.dual, problem.features
        conjugates, cost, error = self.conjugates(), 0.0, self.error()
        v, e = self.v[0, :features].copy(), error[:features] + EPS * np.abs(self.v[0, :features])
        sizes = dual.sizes.reshape(features, -1)
        if self.mixed:
            return nothing
        if (equal := self.equal[:features]).any():
            cost, moved = self._equations(np.flatnonzero(self.equal))
            v[equal] = e[equal] = 0.0
            e[~equal] += moved * sizes[~equal]
        elif (
            problem.loss.intercept
        ):  # mixed with one distribution for all samples; entropies are not negative
            has = problem.weight @ self.probabilities()[0]
            part = float(
                np.max(np.divide(np.abs(self.v[0, -1]) + np.abs(self.v[1, -1]) + error[-1], has))
            )
            part *= 1.0 + 1e-9
            if not part < 0.5:
                return nothing
            e += 2.0 * part * sizes
            cost = -part * conjugates.value if conjugates.value < 0 else 0.0
        if not np.isfinite(cost):
            return nothing
        theta, psi = dual.entered(v.reshape(-1), e.reshape(-1))
        value = -theta * (conjugates.value + conjugates.error) - cost - psi
        value -= 8.0 * EPS * (abs(conjugates.value) + abs(psi) + cost)
        return (float(value), theta * self.u) if theta > 0 and np.isfinite(value) else nothing

    def _equations(self, chosen: np.ndarray) -> tuple[float, float]:
        """As in `_exact`: rows of the change sum to zero as those of what is missing do."""
        off = (np.abs(self.v[0]) + np.abs(self.v[1]) + self.error())[chosen]
        system = self.system(chosen) if chosen.size <= MOST_VIOLATED else None
        if system is None or not (least := system.smallest()) > 0:
            return np.inf, np.inf
        here, p = system.movable, self.probabilities()[0][system.movable.samples]
        distance = (
            float(np.linalg.norm((off / system.sizes[:, None])[system.independent]))
            / least
            * (1.0 + 1e-6)
        )
        far = (system.lever * distance)[:, None]
        if np.any(far > 0.5 * p) or not follow(
            self.problem, here, chosen[system.independent], chosen[system.dependent]
        ):
            return np.inf, np.inf
        slopes = 2.0 + np.abs(np.log(p))
        return float(np.sum(here.weight[:, None] * far * slopes)) * (1.0 + 1e-6), float(far.max())
