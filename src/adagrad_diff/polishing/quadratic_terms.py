"""Penalties of separable quadratic terms, bounds and group norms: subgradients, smooth parts, steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..penalties import Penalty
from ..penalties.base import QuadraticTerms

VANISHED = 1e-14  # part of its last value at which a coordinate or group counts as zero


@dataclass
class Terms(QuadraticTerms):
    """The terms of a penalty, where no coordinate has both a bound and a group."""

    @cached_property
    def smooth(self) -> bool:
        """Whether all terms are quadratic, without bounds."""
        return self.strength is None and not (self.l1.any() or self.bounded)

    @cached_property
    def bounded(self) -> bool:
        """Whether there is a finite bound."""
        return bool((self.lower > -np.inf).any() or (self.upper < np.inf).any())

    def value(self, x: np.ndarray) -> float:
        """Return phi(x) for x inside the bounds."""
        total = float(self.l1 @ np.abs(x) + 0.5 * (self.l2 @ (x * x)))
        return total if self.strength is None else total + float(self.strength @ self.norms(x))

    def sums(self, v: np.ndarray) -> np.ndarray:
        """Return the sums of v over groups."""
        count = self.strength.size  # type: ignore[union-attr]
        return np.asarray(np.bincount(self.labels, v, count))  # type: ignore[arg-type]

    def norms(self, x: np.ndarray) -> np.ndarray:
        """Return the norms of the groups."""
        return np.asarray(np.sqrt(self.sums(x * x)))

    def _curved(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return strength / norm and x / norm of each coordinate's group, zero where x is zero."""
        norms = self.norms(x)
        nonzero, inverse = norms > 0, 1.0 / np.where(norms > 0, norms, 1.0)
        rates: Any = self.strength * nonzero * inverse  # type: ignore[operator]
        return rates[self.labels], x * inverse[self.labels]

    def residual(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the smallest subgradient of f + phi at x, where f has the gradient g."""
        r = g + self.l2 * x
        shrunk = np.copysign(np.maximum(np.abs(r) - self.l1, 0.0), r)
        r = np.where(x == 0, shrunk, r + self.l1 * np.sign(x))
        if self.strength is not None:
            size = self.norms(r)
            share = np.divide(self.strength, size, out=np.zeros_like(size), where=size > 0)
            zero = np.maximum(1.0 - share, 0.0)[self.labels] * r
            r = np.where((self.norms(x) > 0)[self.labels], r + self._curved(x)[0] * x, zero)
        if self.bounded:
            r = np.where(x <= self.lower, np.minimum(r, 0.0), r)
            r = np.where(x >= self.upper, np.maximum(r, 0.0), r)
        return np.asarray(r)

    def free(self, x: np.ndarray) -> np.ndarray:
        """Return which coordinates phi is smooth in: neither at a kink nor at a bound."""
        free = (x != 0) | (self.l1 == 0)
        if self.bounded:
            free &= (x > self.lower) & (x < self.upper)
        if self.strength is not None:
            free &= ((self.norms(x) > 0) | (self.strength == 0))[self.labels]
        return np.asarray(free)

    def kept(self, x: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Return `new` in the closed smooth part of x: coordinates of opposite sign become zero."""
        crossed = (x != 0) & (self.l1 > 0) & (x * new <= VANISHED * x * x)
        new = np.where(crossed, 0.0, new)
        if self.strength is not None:
            turned = (self.sums(x * new) <= VANISHED * self.sums(x * x)) & (self.strength > 0)
            new = np.where(turned[self.labels], 0.0, new)
        return np.clip(new, self.lower, self.upper) if self.bounded else new

    def reach(self, x: np.ndarray, d: np.ndarray) -> float:
        """Return the part of a step d, at most 1, that stays in the closed smooth part of x."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where((self.l1 > 0) & (x * d < 0), -x / d, np.inf)
            if self.bounded:
                bound = np.where(d < 0, self.lower, self.upper)
                t = np.minimum(t, np.where(d != 0, (bound - x) / d, np.inf))
            if self.strength is not None:
                own, turn = self.sums(x * x), self.sums(x * d)
                opposite = (turn < 0) & (self.strength > 0)
                t = np.append(t, np.where(opposite, -own / turn, np.inf))
        return float(max(t.min(initial=1.0), 0.0))

    def hessian(self, x: np.ndarray, free: np.ndarray, majorized: bool) -> np.ndarray:
        """Return the Hessian of the group norms on free coordinates: strength / norm (I - u u').

        With `majorized`, return that of a quadratic upper bound that is exact at x: without u u'.
        """
        rate, u = (v[free] for v in self._curved(x))
        H = np.diag(rate)
        if not majorized:
            labels = self.labels[free]  # type: ignore[index]
            H -= np.where(labels[:, None] == labels, np.outer(rate * u, u), 0.0)
        return H

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> Any:
        """Return the Hessian at x, of squares and group norms, times v, on all coordinates."""
        if self.strength is None:
            return self.l2 * v
        rate, u = self._curved(x)
        return self.l2 * v + rate * (v - u * self.sums(u * v)[self.labels])

    def whole_groups(self, mask: np.ndarray) -> np.ndarray:
        """Return a mask with all members of groups that have one in `mask`."""
        return mask if self.strength is None else np.asarray(self.sums(mask)[self.labels] > 0)

    def part(self, index: np.ndarray) -> Terms:
        """Return the terms of some coordinates, which are whole groups."""
        names = ("l1", "l2", "lower", "upper")
        some = replace(self, **{name: getattr(self, name)[index] for name in names})
        if self.labels is not None and self.strength is not None:
            groups, some.labels = np.unique(self.labels[index], return_inverse=True)
            some.strength = self.strength[groups]
        return some

    def extended(self, count: int) -> Terms:
        """Return the terms with `count` more coordinates that are free."""
        rest = np.zeros(count)
        found = Terms(
            np.append(self.l1, rest),
            np.append(self.l2, rest),
            np.append(self.lower, rest - np.inf),
            np.append(self.upper, rest + np.inf),
        )
        if self.labels is not None and self.strength is not None:
            # Each free coordinate is a group of strength 0.
            found.labels = np.append(self.labels, self.strength.size + np.arange(count))
            found.strength = np.append(self.strength, rest)
        return found


def terms_of(penalty: Penalty, size: int, l2: float) -> Terms | str:
    """Return the terms of a penalty and of the ridge term of a loss, or why there are none."""
    penalty.check_size(size)
    terms = penalty.quadratic_terms(size)
    if terms is None:
        return f"polishing does not support the penalty {penalty.name}"
    if terms.labels is not None and terms.bounded:
        return "polishing does not support groups together with bounds"
    return Terms(terms.l1, terms.l2 + l2, terms.lower, terms.upper, terms.labels, terms.strength)
