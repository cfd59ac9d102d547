"""What a proximal operator has to show, written once: `tests/prox_*.py` list the penalties, `tests/test_prox.py` runs them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

STEPS = ("one", "mild", "wild")  # one step for all, per coordinate over six decades, per coordinate over seventeen


@dataclass(frozen=True)
class Case:
    """A penalty and its three witnesses."""

    name: str
    make: Callable[[int, np.random.Generator], Any]  # a penalty for vectors of (about) the given size
    naive: Callable[[Any, np.ndarray, np.ndarray], np.ndarray]  # the twin: prox of one vector with one step per coordinate
    cvx: Callable[[Any, Any], tuple[Any, list]]  # (objective term, constraints) of a cvxpy variable
    violation: Callable[[Any, np.ndarray, np.ndarray, np.ndarray], float] | None = None  # of (penalty, z, step, x); see below
    size: Callable[[int], int] = lambda d: d  # the size nearest to d that the penalty can have

    def __str__(self) -> str:
        return self.name

    @property
    def sample(self) -> Any:
        """A penalty, to ask for what all of them have in common."""
        return self.make(self.size(9), np.random.default_rng(0))

    @property
    def steps(self) -> tuple[str, ...]:
        """The kinds of steps that it accepts."""
        return STEPS if self.sample.accepts == "diagonal" else STEPS[:1]


def draw_step(kind: str, d: int, rng: np.random.Generator) -> np.ndarray:
    """Steps for d coordinates: one for all, mildly different, or as different as AdaGrad-Diff's first ones can be."""
    if kind == "one":
        return np.full(d, 10.0 ** rng.uniform(-3, 3))
    low, high = (-3, 3) if kind == "mild" else (-8, 9)
    return 10.0 ** rng.uniform(low, high, d)


def points(d: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Ordinary, huge, tiny, mixed and tied points, and zeros of both signs."""
    z = rng.standard_normal(d)
    yield from (z, 1e10 * z, 1e-12 * z, z * 10.0 ** rng.uniform(-12, 10, d), rng.integers(-3, 4, d) * 1.0, 0.0 * z)


def distance(x: np.ndarray, y: Any, step: np.ndarray) -> Any:
    """In the metric of the prox: a relative error of z changes the prox by no more than that, in this norm."""
    return np.sqrt(np.sum((x.astype(float) - y) ** 2 / step, axis=0))


def nan_in_one_trajectory(case: Case) -> Iterator[tuple[Any, np.ndarray]]:
    """Penalties, and proximal points of three trajectories; a NaN at any place of the second stays there, and in it."""
    rng, d = np.random.default_rng(2), case.size(12)
    penalty = case.make(d, rng)
    z = rng.standard_normal((d, 3))
    expected = penalty.prox(z.copy(), 0.5)
    for place in range(d):
        bad = z.copy()
        bad[place, 1] = np.nan
        x = penalty.prox(bad, 0.5)
        np.testing.assert_array_equal(x[:, [0, 2]], expected[:, [0, 2]])
        assert np.isnan(x[place, 1])
        yield penalty, x


def fenchel_violation(penalty: Any, z: np.ndarray, step: np.ndarray, x: np.ndarray) -> float:
    """How far u = (z - x) / step is from being a subgradient at x, by phi(x) + phi*(u) = <x, u>.

    Relative to the terms of the equation and to what rounding z and x by one unit in 1e16 does to u.
    """
    u = (z - x) / step
    terms = np.abs(x * u).sum() + np.abs(penalty.value(x))
    rounding = 1e-6 * np.sum(np.abs(x) * np.maximum(np.abs(z), np.abs(x)) / step)
    try:
        excess = max(0.0, float(penalty.polar(u)) - 1.0)
        gap = abs(penalty.value(x) - x @ u)
    except ValueError:
        excess = 0.0
        gap = abs(penalty.value(x) + penalty.conjugate(u) - x @ u)
    return max(excess, gap / (terms + rounding + 1e-300) if gap else 0.0)
