"""Penalties as pieces: where they are smooth, with which gradient and Hessian, and how far a point is from optimal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..penalties import Penalty


@dataclass
class Pieces:
    """phi(x) = sum_i l1_i |x_i| + l2_i / 2 x_i^2 between bounds, plus strength_k ||x_k|| for groups k of coordinates."""

    l1: np.ndarray
    l2: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    labels: np.ndarray | None = None  # the group of each coordinate
    strength: np.ndarray | None = None  # of each group

    @cached_property
    def smooth(self) -> bool:
        """Whether there are neither kinks nor bounds."""
        return self.labels is None and not (self.l1.any() or self.bounded)

    @cached_property
    def bounded(self) -> bool:
        return bool((self.lower > -np.inf).any() or (self.upper < np.inf).any())

    def value(self, x: np.ndarray) -> float:
        """phi(x) inside the bounds."""
        total = float(self.l1 @ np.abs(x) + 0.5 * (self.l2 @ (x * x)))
        return total if self.strength is None else total + float(self.strength @ self.norms(x))

    def norms(self, x: np.ndarray) -> np.ndarray:
        """Of the groups."""
        assert self.labels is not None
        assert self.strength is not None
        return np.sqrt(np.bincount(self.labels, x * x, self.strength.size))

    def residual(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The smallest subgradient of f + phi at x, where f has the gradient g."""
        r = g + self.l2 * x
        r = np.where(
            x == 0, np.sign(r) * np.maximum(np.abs(r) - self.l1, 0.0), r + self.l1 * np.sign(x)
        )
        if self.strength is not None:
            own, pull = self.norms(x), self.norms(r)
            share = np.divide(self.strength, own, out=np.zeros_like(own), where=own > 0)[
                self.labels
            ]
            left = np.maximum(
                1.0 - np.divide(self.strength, pull, out=np.zeros_like(pull), where=pull > 0), 0.0
            )
            r = np.where((own > 0)[self.labels], r + share * x, left[self.labels] * r)
        if self.bounded:
            r = np.where(x <= self.lower, np.minimum(r, 0.0), r)
            r = np.where(x >= self.upper, np.maximum(r, 0.0), r)
        return np.asarray(r)

    def gain(self, x: np.ndarray, g: np.ndarray, curve: np.ndarray) -> float:
        """What steps of single coordinates of these curvatures would bring, all in all, twice."""
        if self.strength is not None:
            r = self.residual(x, g)
            return float(
                np.sum(
                    np.divide(
                        r * r, curve + self.l2, out=np.zeros_like(r), where=curve + self.l2 > 0
                    )
                )
            )
        y = curve * x - g
        full = np.maximum(curve + self.l2, 1e-300)
        best = np.sign(y) * np.maximum(np.abs(y) - self.l1, 0.0) / full
        step = np.clip(best, self.lower, self.upper) - x
        return float(
            np.sum(np.where(curve + self.l2 > 0, full * step * (2.0 * (best - x) - step), 0.0))
        )

    def free(self, x: np.ndarray) -> np.ndarray:
        """Which coordinates are on a smooth piece: neither at a kink nor at a bound."""
        free = (x != 0) | (self.l1 == 0)
        if self.bounded:
            free &= (x > self.lower) & (x < self.upper)
        if self.strength is not None:
            free &= ((self.norms(x) > 0) | (self.strength == 0))[self.labels]
        return np.asarray(free)

    def kept(self, x: np.ndarray, new: np.ndarray) -> np.ndarray:
        """A new point put upon the closed piece of x: what would change its sign, or turn round, becomes zero; bounds hold."""
        new = np.where((x * new < 0) & (self.l1 > 0), 0.0, new)
        if self.strength is not None:
            own, turn = (np.bincount(self.labels, x * y, self.strength.size) for y in (x, new))  # type: ignore[arg-type]
            new = np.where(((turn <= 1e-14 * own) & (self.strength > 0))[self.labels], 0.0, new)
        return np.clip(new, self.lower, self.upper) if self.bounded else new

    def reach(self, x: np.ndarray, d: np.ndarray) -> float:
        """The part of a step d, at most 1, that stays on the closed piece of x."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where((self.l1 > 0) & (x * d < 0), -x / d, np.inf)
            if self.bounded:
                t = np.minimum(
                    t,
                    np.where(
                        d < 0, (self.lower - x) / d, np.where(d > 0, (self.upper - x) / d, np.inf)
                    ),
                )
            if self.strength is not None:
                own, turn = (np.bincount(self.labels, x * y, self.strength.size) for y in (x, d))  # type: ignore[arg-type]
                t = np.append(t, np.where((turn < 0) & (self.strength > 0), -own / turn, np.inf))
        return float(max(min(t.min(initial=1.0), 1.0), 0.0))

    def bend(self, x: np.ndarray, free: np.ndarray, more: bool = False) -> np.ndarray | None:
        """The Hessian of the group norms on the free coordinates: strength / ||x_k|| (I - u u'), u = x_k / ||x_k||.

        With `more`, that of a quadratic function above them that touches them at x: strength / ||x_k|| I.
        """
        if self.strength is None:
            return None
        labels, y = self.labels[free], x[free]  # type: ignore[index]
        own = self.norms(x)
        rate = np.divide(self.strength, own, out=np.zeros_like(own), where=own > 0)[labels]
        u = y / np.where(own > 0, own, 1.0)[labels]
        bend = (
            np.zeros((y.size, y.size))
            if more
            else np.where(labels[:, None] == labels, -np.outer(rate * u, u), 0.0)
        )
        bend[np.diag_indices_from(bend)] += rate
        return bend

    def bend_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray | float:
        """That Hessian times a vector, on all coordinates."""
        if self.strength is None:
            return 0.0
        own = self.norms(x)
        rate = np.divide(self.strength, own, out=np.zeros_like(own), where=own > 0)[self.labels]
        u = x / np.where(own > 0, own, 1.0)[self.labels]
        return np.asarray(rate * (v - u * np.bincount(self.labels, u * v, own.size)[self.labels]))  # type: ignore[arg-type]

    def whole(self, places: np.ndarray) -> np.ndarray:
        """A mask, with all members of the groups that have one in it."""
        if self.labels is None:
            return places
        return np.asarray(np.bincount(self.labels, places, self.strength.size)[self.labels] > 0)  # type: ignore[union-attr]

    def part(self, places: np.ndarray) -> Pieces:
        """Those of some coordinates, which are whole groups."""
        some = replace(
            self,
            l1=self.l1[places],
            l2=self.l2[places],
            lower=self.lower[places],
            upper=self.upper[places],
        )
        if self.labels is not None and self.strength is not None:
            names, some.labels = np.unique(self.labels[places], return_inverse=True)
            some.strength = self.strength[names]
        return some


def pieces(penalty: Penalty, size: int, free: int, l2: float) -> Pieces | str:
    """Of a penalty on `size` coordinates, the loss's ridge term, and `free` further coordinates without any; or why not."""
    penalty.check_size(size)
    terms = penalty.quadratic_terms(size)
    if terms is None:
        return f"the second-order step does not know {penalty.name}"
    if terms.labels is not None and terms.bounded:
        return "there are groups beside bounds"
    rest = np.zeros(free)
    found = Pieces(
        np.append(terms.l1, rest),
        np.append(terms.l2 + l2, rest),
        np.append(terms.lower, rest - np.inf),
        np.append(terms.upper, rest + np.inf),
    )
    if terms.labels is not None and terms.strength is not None:
        # Each free coordinate is a group of strength 0.
        found.labels = np.append(terms.labels, terms.strength.size + np.arange(free))
        found.strength = np.append(terms.strength, rest)
    return found
