"""A recorded run compared with a point x: assumptions, parts of Lemma 1, and inequalities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .run import Run


@dataclass(frozen=True, eq=False, repr=False)
class Inequality:
    """left <= right, iteration by iteration.

    Slack is measured against the sum of the magnitudes of all that enters both sides, canceled or
    not. That separates rounding from violation: where both sides have converged to zero, their
    ratio says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.experiments.theory import Inequality
    >>> n, right, magnitude = np.array([1, 2]), np.array([2.0, 2.0]), np.array([4.0, 4.0])
    >>> said = Inequality("one", n, np.array([1.0, 3.0]), right, magnitude, rounding=1e-12)
    >>> said.slack.tolist(), said.smallest, said.holds()
    ([1.0, -1.0], (-0.25, 2), False)
    """

    name: str
    n: np.ndarray  # the paper's index of each entry
    left: np.ndarray
    right: np.ndarray
    magnitude: np.ndarray  # of everything that enters the two sides
    rounding: float  # allowed, relative to the magnitude; see `Run.rounding`
    terms: dict[str, np.ndarray] = field(default_factory=dict)  # of the right side

    @property
    def slack(self) -> np.ndarray:
        """right - left."""
        return np.asarray(self.right - self.left)

    @property
    def relative(self) -> np.ndarray:
        """Slack over magnitude; infinite where the right side is."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(self.slack == 0, 0.0, self.slack / self.magnitude)
        return np.where(np.isposinf(self.right), np.inf, ratio)

    @property
    def smallest(self) -> tuple[float, int]:
        """The smallest relative slack, and the index n where it occurs. NaN is a violation."""
        relative = np.nan_to_num(self.relative, nan=-np.inf, posinf=np.inf)
        k = int(np.argmin(relative))
        return float(relative[k]), int(self.n[k])

    def holds(self, rounding: float | None = None) -> bool:
        """Return whether left <= right at every iteration, up to rounding."""
        return self.smallest[0] >= -(self.rounding if rounding is None else rounding)


def inequality(
    run: Run, name: str, first: int, left: Any, right: Any, magnitude: Any, terms: Any = None
) -> Inequality:
    """Return an inequality on a run, whose first entry has index `first`."""
    n = np.arange(first, first + len(left))
    return Inequality(name, n, left, right, magnitude, run.rounding, terms or {})


class Lemma1(NamedTuple):
    """The parts of Lemma 1 for n = 1 ... N, at a comparison point x."""

    x: np.ndarray
    value: float  # F(x)
    size: float  # the magnitude of F(x)
    gap: np.ndarray  # F(x^{n+1}) - F(x)
    before: np.ndarray  # ||x^n - x||^2 in the metric W_n
    after: np.ndarray  # ||x^{n+1} - x||^2 in the metric W_n
    alpha: np.ndarray  # eta_n^2 ||g^{n+1} - g^n||^2 in the metric W_n^{-1}
    magnitude: np.ndarray  # of all that enters


def parts(run: Run, x: Any, name: str) -> Lemma1:
    """Return the parts of Lemma 1 at a comparison point."""
    x, value, size = point(run, x, name)
    w, eta, away = run.w[:-1], run.eta, np.abs(run.x - x)
    distance = run.by_block(away**2)
    before, after = np.sum(w * distance[:-1], axis=1), np.sum(w * distance[1:], axis=1)
    alpha = eta**2 * np.sum(run.squares[1:] / w, axis=1)
    # A rounded x or g changes a square by twice the product with its magnitude. A gradient is a sum
    # over samples that may cancel; the largest entry of all gradients stands for what is canceled.
    weight, steps = w[:, run.labels], eta[:, None] * np.abs(run.g).max()
    rounded = weight * away[1:] * (np.abs(run.x[:-1]) + np.abs(run.x[1:]))
    rounded += steps * (away[1:] + away[:-1])
    rounded += eta[:, None] * steps * np.abs(np.diff(run.g, axis=0)) / weight
    magnitude = 2 * eta * (run.size[:-1] + run.size[1:] + size) + before + after + alpha
    magnitude += 2 * rounded.sum(axis=1)
    return Lemma1(x, value, size, run.F[1:] - value, before, after, alpha, magnitude)


# ------------------------------------------------------------------------------ assumptions


def point(run: Run, x: Any, name: str) -> tuple[np.ndarray, float, float]:
    """Return a comparison point as a vector, F there, and the magnitude of that."""
    x = np.asarray(x, run.x.dtype)
    if x.size != run.x.shape[1]:
        raise ValueError(
            f"The comparison point of {name!r} must have {run.x.shape[1]} coordinates. Got shape "
            f"{x.shape}."
        )
    value, size = run.objective(x)
    if not np.isfinite(value):
        raise ValueError(
            f"The objective is infinite at the comparison point: there {name!r} says nothing."
        )
    return x.reshape(-1), value, size


def minimizer(run: Run, x_star: Any, name: str) -> tuple[np.ndarray, float, float]:
    """Return the same for a minimizer. Raise if an iterate is better.

    The proofs use of a minimizer only that F(x^n) >= F(x_star) for the iterates after the first.
    """
    x, value, size = point(run, x_star, name)
    below = value - run.F[1:]
    k = int(np.argmax(below))
    if below[k] > run.rounding * (size + run.size[1 + k]):
        raise ValueError(
            f"{name!r} needs a minimizer of F. The point given is not one: F(x^{k + 2}) is "
            f"smaller by {below[k]:.3g}."
        )
    return x, value, size


def smoothness(run: Run, L: float | None, name: str) -> float:
    """Return L, given or that of the loss."""
    try:
        return run.loss.lipschitz() if L is None else float(L)
    except ValueError:
        raise ValueError(
            f"{name!r} needs an L-smooth f; {type(run.loss).__name__} is not known to be. If it "
            "is, give L."
        ) from None


def check_rule(run: Run, kind: type, name: str, constant: bool = False) -> None:
    """Raise if a run was made by another rule, or with several eta where the paper has one."""
    if not isinstance(run.rule, kind):
        raise ValueError(
            f"{name!r} is about {kind.__name__}; this run was made by {type(run.rule).__name__}."
        )
    if constant and np.ptp(run.eta) > 0:
        raise ValueError(f"{name!r} needs a constant eta; this run was made with a schedule.")
