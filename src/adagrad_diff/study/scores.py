"""What follows from the gaps of a comparison: ranges of good step sizes, best ones, and regrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from .decades import decades

ITERATES = ("last", "best", "average")
WITHIN = 10.0  # times the best gap of all rules
BELOW = {"1e-1": 1e-1, "1e-2": 1e-2, "1e-3": 1e-3, "1e-4": 1e-4}


class Score(TypedDict):
    """How one rule has done, by one kind of iterate. Gaps are means over the starts; None where there is no number."""

    rule: str
    iterate: str
    free: bool  # whether it has no step size: then it is good at all of the grid, or nowhere
    decades_10x: float
    at_edge: bool  # whether the range touches an end of the grid, so that it may be longer
    decades_below: dict[str, float]
    best_eta: float | None
    best_gap: float | None
    default_eta: float | None
    default_gap: float | None
    regret: float | None  # default_gap / the smallest gap of all rules


def scores(
    rules: Sequence[str],
    etas: np.ndarray,
    gaps: Mapping[str, np.ndarray],
    defaults: Mapping[str, np.ndarray],
    free: np.ndarray,
    published: np.ndarray,
    floor: float = 0.0,
) -> list[Score]:
    """The scores of every rule and iterate.

    Parameters
    ----------
    rules : names
    etas : array
        Increasing.
    gaps : dict of iterate -> array (rules, etas)
        Infinite where a run failed.
    defaults : dict of iterate -> array (rules,)
        The gaps at the published step sizes; NaN where there is none.
    free, published : arrays (rules,)
        Whether a rule has no step size, and the published one or NaN.
    floor : float
        Gaps below it are not told apart.

    Examples
    --------
    >>> import numpy as np
    >>> gaps = {"last": np.array([[1e-1, 1e-3, 1e-1], [1.0, 1e-2, 1.0]])}
    >>> none = np.full(2, np.nan)
    >>> found = scores(["a", "b"], np.array([0.1, 1.0, 10.0]), gaps, {"last": none}, np.zeros(2, bool), none)
    >>> [(score["rule"], score["decades_10x"], score["best_eta"], score["best_gap"]) for score in found]
    [('a', 1.0, 1.0, 0.001), ('b', 0.0, 1.0, 0.01)]
    """
    found = []
    for iterate, of_rules in gaps.items():
        everywhere = np.concatenate([of_rules.ravel(), defaults[iterate]])
        smallest = float(max(np.nanmin(everywhere), floor))
        for row, rule in enumerate(rules):
            default, eta = (
                float(defaults[iterate][row]),
                None if free[row] else _number(published[row]),
            )
            found.append(
                _score(
                    rule,
                    iterate,
                    etas,
                    of_rules[row],
                    bool(free[row]),
                    smallest,
                    floor,
                    eta,
                    default,
                )
            )
    return found


def _score(
    rule: str,
    iterate: str,
    etas: np.ndarray,
    gaps: np.ndarray,
    free: bool,
    smallest: float,
    floor: float,
    default_eta: float | None,
    default: float,
) -> Score:
    counted = np.maximum(gaps, floor)
    best = int(np.argmin(counted))
    width, at_edge = (
        decades(etas, counted, WITHIN * smallest) if np.isfinite(smallest) else (0.0, False)
    )
    return {
        "rule": rule,
        "iterate": iterate,
        "free": free,
        "decades_10x": width,
        "at_edge": at_edge and not free,
        "decades_below": {name: decades(etas, counted, limit)[0] for name, limit in BELOW.items()},
        "best_eta": None if free or not np.isfinite(gaps[best]) else float(etas[best]),
        "best_gap": _number(gaps.min()),
        "default_eta": default_eta,
        "default_gap": _number(default),
        "regret": _number(max(default, floor) / smallest)
        if smallest > 0 and np.isfinite(smallest)
        else None,
    }


def is_near(score: Score) -> bool:
    """Whether a rule without a step size is within the factor: on a grid of one eta there are no decades that say so."""
    return score["regret"] is not None and score["regret"] < WITHIN


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    return float(value) if np.isfinite(value) else None
