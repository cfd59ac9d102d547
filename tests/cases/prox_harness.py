"""What a test of a proximal operator needs: a penalty with its references, points and steps.

The files `prox_calculus`, `prox_chains`, `prox_norms` and `prox_planes` list the cases and `prox_cases` collects them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

STEPS = (
    "one",
    "mild",
    "wild",
)  # one step for all, per coordinate over six decades, per coordinate over seventeen


@dataclass(frozen=True)
class Case:
    """A penalty and two references of its prox. The third one is its own conjugate, by `fenchel_violation`."""

    name: str
    make: Callable[
        [int, np.random.Generator], Any
    ]  # a penalty for vectors of (about) the given size
    naive: Callable[
        [Any, np.ndarray, np.ndarray], np.ndarray
    ]  # the prox of one vector with one step per coordinate
    cvx: Callable[[Any, Any], tuple[Any, list]]  # (objective term, constraints) of a cvxpy variable
    size: Callable[[int], int] = lambda d: d  # the size nearest to d that the penalty can have
    tolerance: float = (
        1e-12  # of the distance to `naive`, relative to the size of z in the metric of the prox
    )

    def __str__(self) -> str:
        return self.name

    @property
    def sample(self) -> Any:
        """Return a penalty of this kind."""
        return self.make(self.size(9), np.random.default_rng(0))

    @property
    def steps(self) -> tuple[str, ...]:
        """Return the kinds of steps that the penalty accepts."""
        return STEPS if self.sample.accepts == "diagonal" else STEPS[:1]


def draw_step(kind: str, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return steps for d coordinates, of one of the kinds in STEPS."""
    if kind == "one":
        return np.full(d, 10.0 ** rng.uniform(-3, 3))
    low, high = (-3, 3) if kind == "mild" else (-8, 9)
    return 10.0 ** rng.uniform(low, high, d)


def points(d: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield ordinary, huge, tiny, mixed, tied and nearly equal points, and zeros of both signs."""
    z = rng.standard_normal(d)
    yield from (
        z,
        1e10 * z,
        1e-12 * z,
        z * 10.0 ** rng.uniform(-12, 10, d),
        rng.integers(-3, 4, d) * 1.0,
        0.0 * z,
    )
    yield 1e10 * (1 + 1e-9 * rng.integers(-5, 5, d))


def distance(x: Any, step: np.ndarray) -> Any:
    """Return the norm of x in the metric of the prox, in which a prox is nonexpansive, in extended precision."""
    return np.sqrt(np.sum(np.asarray(x, np.longdouble) ** 2 / np.asarray(step, np.longdouble)))


def shifts(penalty: Any) -> float:
    """Return the size of the numbers that z is added to, because rounding is relative to them."""
    inner = getattr(penalty, "penalty", None)
    return float(np.max(np.abs(getattr(penalty, "shift", 0.0)))) + (
        0.0 if inner is None else 10 * shifts(inner)
    )


def fenchel_violation(penalty: Any, z: np.ndarray, step: np.ndarray, x: np.ndarray) -> float:
    """Return how far u = (z - x) / step is from being a subgradient at x: phi(x) + phi*(u) = <x, u> holds at one.

    The error is relative to the terms of the equation and to what rounding z and x does to u.
    """
    u = (z - x) / step
    value = penalty.value(x)
    terms = (
        np.abs(x * u).sum()
        + np.abs(value)
        + 1e-6 * np.sum(np.abs(x) * np.maximum(np.abs(z), np.abs(x)) / step)
    )
    norm = bool({"norm", "seminorm"} & penalty.properties)
    excess, conjugate = (
        (max(0.0, penalty.polar(u) - 1.0), 0.0) if norm else (0.0, penalty.conjugate(u))
    )
    return max(excess, abs(value + conjugate - x @ u) / (terms + 1e-300))
