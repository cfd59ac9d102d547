"""Newton's method for a smooth loss plus a penalty of pieces: working sets, small problems on them, searches along steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .loss_model import LossModel
from .newton_products import Large
from .newton_small import Small
from .quadratic_terms import Pieces
from .solver import Stop

MOST_STEPS = 60
MOST_WORK = 2e10  # multiplications for that
LITTLE_WORK = 1e7  # multiplications for a Hessian of all coordinates, below which nothing is chosen
ONCE_WORK = 5e8  # the same if it is needed once only
PART_OF_TOL = 0.01  # what may be left, as a part of the tolerance
LEAST_DAMPING = 3e-3
FLOOR = 1e-9  # part of a coordinate's largest curvature
AS_GOOD_AS_ZERO = 1e-14  # part of the objective at zero that is as good as zero
UNSEEN = 1e-13  # part of the objective that rounding may have added
ROUND_OFF = float(np.finfo(np.float64).eps)


@dataclass
class End:
    x: np.ndarray
    done: bool
    steps: int
    coefficients: int
    reason: str


class Newton:
    """The iteration, from one point on."""

    def __init__(self, model: LossModel, pieces: Pieces):
        self.model, self.p = model, pieces
        self.index = np.empty(0, np.intp)
        self.dead: np.ndarray | None = None
        self.first = np.inf  # the objective where it began

    def run(self, x: np.ndarray, tol: float, stop: Stop) -> End:
        with np.errstate(all="ignore"):  # what overflows is seen in the value
            x = np.clip(x, self.p.lower, self.p.upper) if self.p.bounded else x
            end = self._run(x, tol, stop)
            # At the optimum the objective is flat, and rounding decides about its last places: then the gradient tells more.
            slack = UNSEEN * abs(self.first) if end.done else 0.0
            if self.model.value + self.p.value(end.x) > self.first + slack:
                end.x = x
                self.model.start(x)
            return end

    def _run(self, x: np.ndarray, tol: float, stop: Stop) -> End:
        model, p = self.model, self.p
        self.index = np.empty(0, np.intp)  # of an earlier run: this one must not depend on it
        self.dead = dead if (dead := model.unused()).any() else None
        if self.dead is not None:
            wanted = (
                (p.l1 + p.l2 > 0)
                if p.strength is None
                else (p.l1 + p.l2 + p.strength[p.labels] > 0)
            )
            x = np.where(self.dead & wanted, 0.0, x)
        model.start(x)
        phi = p.value(x)
        self.first = model.value + phi
        if not (np.isfinite(model.value + phi) and np.isfinite(model.gradient).all()):
            return End(x, False, 0, 0, "the objective overflows where it began")
        last, before, damping, ease = np.inf, np.inf, 0.0, 1.0
        for step in range(MOST_STEPS):
            r = p.residual(x, model.gradient)
            if self.dead is not None:
                r = np.where(self.dead, 0.0, r)
            size = max(abs(model.value + phi), AS_GOOD_AS_ZERO * model.scale, 1e-300)
            excess = self._excess(r, tol, size)
            stuck = (
                excess > 0.5 * before
                and last <= UNSEEN * size
                and excess <= max(1e-6 / max(tol, ROUND_OFF), 100.0)
            )  # by rounding
            if last <= PART_OF_TOL * tol * size and (excess <= 1.0 or stuck):
                return End(x, True, step, int(p.free(x).sum()), "")
            if stop():
                return End(x, False, step, int(p.free(x).sum()), "the time was over")
            before = excess
            index = self._working(x, r, tol)
            if index.size == 0:
                return End(x, True, step, 0, "")
            q = p.part(index)
            old, g = x[index], model.gradient[index]
            gain = q.gain(old, g, model.bound()[index])
            model.damping = damping * (1.0 if ease == 1.0 else min(1.0, 100.0 * gain / size))
            if self._small(index.size):
                H = self._lifted(model.hessian(index), index, q)
                new = Small(H, g, old, q).solve(
                    max(1e-26 * size, 0.0 if model.constant else gain * min(0.05, gain / size))
                )
            else:
                new = Large(model, q, index, old, size).solve(gain)
            d = new - old
            slope = float(g @ d) + q.value(new) - q.value(old)
            if not (np.isfinite(slope) and np.isfinite(d).all()):
                return End(x, False, step, index.size, "a step was not finite")
            if slope > 4 * ROUND_OFF * size:  # what was put back upon its piece leads upwards
                new = self._gradient_step(old, g, index, q)
                d = new - old
                slope = float(g @ d) + q.value(new) - q.value(old)
            last = max(-slope, 0.0)
            model.along(index, d)
            t = self._search(old, d, q, slope, model.value + phi - q.value(old))
            if t == 0.0:
                if last <= max(PART_OF_TOL * tol, UNSEEN) * size and excess <= 1.0:
                    return End(x, True, step, index.size, "")
                if model.damping > 1e3:
                    return End(x, False, step, index.size, "no step made the objective smaller")
                damping = max(1e2 * model.damping, LEAST_DAMPING)
                continue
            if t < 0.5:
                damping, ease = max(2.0 * model.damping, LEAST_DAMPING), 1.0
            elif t == 1.0:
                damping, ease = (
                    (ease * damping if damping > 0.1 * LEAST_DAMPING else 0.0),
                    max(0.5 * ease, 0.1),
                )
            x = x.copy()
            x[index] = new if t == 1.0 else old + t * d
            model.move(t)
            phi = p.value(x)
        return End(
            x,
            False,
            MOST_STEPS,
            index.size,
            "there may be no minimiser: the objective still falls after many steps",
        )

    def _excess(self, r: np.ndarray, tol: float, size: float) -> float:
        """The largest part of what a subgradient may be, in units of the penalty's strength or of the gradient's terms."""
        if (
            self.p.smooth and self.p.l2.all()
        ):  # strongly convex: this bounds the error of the objective
            return float(np.sqrt(np.sum(r * r / self.p.l2) / (2.0 * PART_OF_TOL * tol * size)))
        noise = self.model.noise()
        unit = self.p.l1 if self.p.strength is None else self.p.l1 + self.p.strength[self.p.labels]
        least = np.maximum(
            PART_OF_TOL * tol * np.where(unit > 0, unit, noise), 16 * ROUND_OFF * noise
        )
        return float(np.max(np.abs(r) / np.maximum(least, 1e-300)))

    def _gradient_step(
        self, x: np.ndarray, g: np.ndarray, index: np.ndarray, q: Pieces
    ) -> np.ndarray:
        """A step in a diagonal metric, at whose end the penalty counts."""
        bound = np.maximum(self.model.bound()[index], 1e-300)
        y = bound * x - g
        return np.asarray(
            np.clip(
                np.sign(y) * np.maximum(np.abs(y) - q.l1, 0.0) / (bound + q.l2), q.lower, q.upper
            )
        )

    def _lifted(self, H: np.ndarray, index: np.ndarray, q: Pieces) -> np.ndarray:
        """H, with some curvature for coordinates that have none here but elsewhere: nothing else would move them."""
        least = FLOOR * self.model.bound()[index]
        flat = H.diagonal() + q.l2 < least
        return H + np.diag(np.where(flat, least, 0.0)) if flat.any() else H

    def _small(self, count: int) -> bool:
        if (
            self.p.smooth and 0 < 4 * self.model.samples < count
        ):  # then there are few directions to look into
            return False
        return count <= self.model.max_dense[self.p.smooth] and self.model.cost(count) <= MOST_WORK

    def _working(self, x: np.ndarray, r: np.ndarray, tol: float) -> np.ndarray:
        """The coordinates of the next small problem: those that are free, and the worst of those that should be."""
        n = self.model.size
        if n <= self.model.max_dense[False] and self.model.cost(n) <= LITTLE_WORK:
            return np.arange(n) if self.dead is None else np.flatnonzero(~self.dead)
        free = self.p.free(x)
        want = ~free & (r != 0)
        most = max(100, int(free.sum()))
        if np.count_nonzero(want) > most:
            score = np.where(want, r * r / np.maximum(self.model.bound(), 1e-300), 0.0)
            want &= score >= np.partition(score, -most)[-most]
        need = self.p.whole(free | want)
        if self.dead is not None:
            need &= ~self.dead
        count = np.count_nonzero(need)
        if self.index.size <= 2 * count + 100 and need[self.index].sum() == count:
            return self.index  # what is known of it can be used again
        if (
            self.model.constant
            and self.index.size
            and self._small(n)
            and self.model.cost(n) <= ONCE_WORK
        ):
            need[:] = (
                True if self.dead is None else ~self.dead
            )  # the Hessian of all: it will do for all steps
        self.index = np.flatnonzero(need)
        return self.index

    def _search(
        self, old: np.ndarray, d: np.ndarray, q: Pieces, slope: float, rest: float
    ) -> float:
        """A part t of the step such that the objective falls by a part of what the slope promises; 0 if there is none."""
        at = rest + q.value(old)
        slack = 8 * ROUND_OFF * (abs(at) + abs(rest))
        t = 1.0
        for _ in range(40):
            value = self.model.at(t) + (rest - self.model.value) + q.value(old + t * d)
            if value <= at + 1e-4 * t * slope + slack:
                return t
            curve = value - at - t * slope  # of a parabola through what is known
            best = -0.5 * t * t * slope / curve if np.isfinite(curve) and curve > 0 else 0.0
            t = min(max(best, 0.1 * t), 0.5 * t)
        return 0.0
