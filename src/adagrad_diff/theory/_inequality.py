"""One inequality of the paper on one run, and the assumptions that inequalities rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..rules import AdaGradDiff
from ._run import Run


@dataclass(frozen=True, eq=False)
class Inequality:
    """left <= right, iteration by iteration.

    Slack is measured against the sum of the magnitudes of all that enters both sides, cancelled or not. That keeps rounding
    and violation apart: where both sides have converged to zero, their ratio says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.theory import Inequality
    >>> said = Inequality("one", n=np.array([1, 2]), left=np.array([1.0, 3.0]), right=np.array([2.0, 2.0]),
    ...                   magnitude=np.array([4.0, 4.0]), rounding=1e-12)
    >>> said.slack.tolist(), said.smallest, said.holds()
    ([1.0, -1.0], (-0.25, 2), False)
    """

    name: str
    n: np.ndarray = field(repr=False)  # the paper's index of each entry
    left: np.ndarray = field(repr=False)
    right: np.ndarray = field(repr=False)
    magnitude: np.ndarray = field(repr=False)  # of everything that enters the two sides
    rounding: float  # allowed, relative to the magnitude; see `Run.rounding`
    needs: tuple[str, ...] = ()  # assumptions, which were checked
    terms: Mapping[str, np.ndarray] = field(
        default_factory=dict, repr=False
    )  # of the right side, by name

    @property
    def slack(self) -> np.ndarray:
        """right - left."""
        return np.asarray(self.right - self.left)

    @property
    def relative(self) -> np.ndarray:
        """Slack over magnitude; infinite where the right side is."""
        finite = np.isfinite(self.right)
        bottom = np.where(finite & (self.magnitude > 0), self.magnitude, 1.0)
        return np.where(finite, np.where(finite, self.slack, 0.0) / bottom, np.inf)

    @property
    def smallest(self) -> tuple[float, int]:
        """The smallest relative slack, and the index n it has there."""
        relative = self.relative
        k = int(
            np.argmin(np.where(np.isnan(relative), -np.inf, relative))
        )  # not a number is not a proof
        return float(relative[k]), int(self.n[k])

    def holds(self, rounding: float | None = None) -> bool:
        """Whether left <= right at every iteration, up to rounding."""
        return self.smallest[0] >= -(self.rounding if rounding is None else rounding)


def point(run: Run, x: Any, owner: str) -> tuple[np.ndarray, float, float]:
    """A comparison point as a vector, F there, and the magnitude of that."""
    x = np.asarray(x, run.x.dtype)
    if x.size != run.x.shape[1]:
        raise ValueError(
            f"The comparison point of {owner} must have {run.x.shape[1]} coordinates. Got shape {x.shape}."
        )
    value, size = run.objective(x)
    if not np.isfinite(value):
        raise ValueError(
            f"The objective is infinite at the comparison point: there {owner} says nothing."
        )
    return x.reshape(-1), value, size


def minimiser(run: Run, x_star: Any, owner: str) -> tuple[np.ndarray, float, float]:
    """The same for a minimiser: refused if an iterate is better.

    The proofs use of a minimiser only that F(x^n) >= F(x_star) for the iterates after the first, so this is all there is to
    check.
    """
    x, value, size = point(run, x_star, owner)
    below = value - run.F[1:]
    k = int(np.argmax(below))
    if below[k] > run.rounding * (size + run.size[1 + k]):
        raise ValueError(
            f"{owner} needs a minimiser of F; the point given is none: F(x^{k + 2}) is smaller by {below[k]:.3g}."
        )
    return x, value, size


def smoothness(run: Run, L: float | None, owner: str) -> float:
    """L, given or that of the loss."""
    if L is not None:
        return float(L)
    try:
        return run.loss.lipschitz()
    except ValueError:
        name = type(run.loss).__name__
        raise ValueError(
            f"{owner} needs an L-smooth f; {name} is not known to be. If it is, give L."
            if name == "FunctionLoss"
            else f"{owner} needs an L-smooth f; the loss {name} is not."
        ) from None


def algorithm_1(run: Run, owner: str, constant: bool = True) -> None:
    """Refuse other metrics than that of AdaGrad-Diff and, where the paper has one eta, several."""
    if not isinstance(run.rule, AdaGradDiff):
        raise ValueError(
            f"{owner} is about AdaGrad-Diff; this run was made by {type(run.rule).__name__}."
        )
    if constant and np.ptp(run.eta) > 0:
        raise ValueError(f"{owner} needs a constant eta; this run was made with a schedule.")


def bounded(run: Run, x_star: np.ndarray, owner: str) -> None:
    """Refuse a run whose iterates still move away: no finite run shows more than that."""
    distance = np.linalg.norm(run.x - x_star, axis=1)
    half = len(distance) // 2
    if distance[half:].max() > 1.01 * distance[: max(half, 1)].max():
        raise ValueError(
            f"{owner} needs bounded iterates; here the distance to the minimiser still grows: up to "
            f"{distance[: max(half, 1)].max():.3g} in the first half of the run, {distance[half:].max():.3g} in the second."
        )
