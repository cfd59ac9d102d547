"""Scores of losses over step sizes: widths of good ranges, sensitivities, tunability; a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .result import Sensitivity

FACTORS = {"10x": 10.0, "2x": 2.0, "1.1x": 1.1}  # times the smallest value of all methods
LEVELS = {
    f"below_{level}": float(level) for level in ("1e-1", "1e-2", "1e-3", "1e-4")
}  # of relative gaps
TRIALS = (1, 2, 4, 8)  # random step sizes that are tried
CENTERED_DECADES = 1.0  # on both sides of the best step size
NAMED_RULES = 4  # in a list of gaps
GRID_ROUNDING = 1e-9  # decades by which a grid point may miss that distance

Score = dict[str, Any]  # one row of `Sensitivity.table`


def decades(etas: Any, values: Any, threshold: float) -> tuple[float, bool]:
    r"""Return the length of the set of step sizes with a value below a threshold, in decades.

    .. math:: \Big|\{ \log_{10} \eta : \text{value}(\eta) < \text{threshold} \}\Big|

    Between grid points, log(value) is linear in log(eta). Next to an infinite value (a run that
    diverged) only the other end of the interval counts as below. A set in several pieces has the
    sum of their lengths.

    Parameters
    ----------
    etas : array
        Increasing positive step sizes.
    values : array
        One value per eta, >= 0; infinite where a run diverged.
    threshold : float
        No value is below a threshold that is zero or infinite.

    Returns
    -------
    length : float
    at_edge : bool
        Whether the value is below the threshold at an end of the grid. The set may continue beyond
        it, and the length is a lower bound.

    Examples
    --------
    >>> decades([0.01, 0.1, 1.0, 10.0], [1.0, 1e-2, 1.0, float("inf")], threshold=0.1)
    (1.0, False)
    >>> decades([0.01, 0.1, 1.0], [1e-3, 1e-2, 1.0], threshold=0.1)
    (1.5, True)
    """
    if not 0 < threshold < np.inf:
        return 0.0, False
    with np.errstate(divide="ignore"):
        height = np.log(values) - np.log(threshold)  # negative where the value is below
    left, right = height[:-1], height[1:]
    share = ((left < 0) & (right < 0)).astype(np.float64)  # of each interval
    crossing = (left < 0) != (right < 0)
    inside, outside = np.minimum(left, right)[crossing], np.maximum(left, right)[crossing]
    # From a value of zero, a line crosses the threshold only at its other end; to an infinite
    # value, it crosses there. Between the two the crossing may be anywhere, and half of the
    # interval counts.
    zero, infinite = np.isneginf(inside), np.isposinf(outside)
    with np.errstate(invalid="ignore"):
        share[crossing] = np.select(
            [zero & infinite, zero], [0.5, 1.0], inside / (inside - outside)
        )
    return float(share @ np.diff(np.log10(etas))), bool(height[0] < 0 or height[-1] < 0)


def expected_best(values: Any, trials: int) -> float:
    """Return the expected smallest value after so many trials of uniformly random grid points.

    This is the tunability of Sivaprasad et al. 2020.

    Examples
    --------
    >>> expected_best([1.0, 3.0], 1), expected_best([1.0, 3.0], 2)
    (2.0, 1.5)
    """
    ordered = np.sort(values)
    # The k-th smallest of n is the best if all trials are among the k-th and larger ones, but not
    # all among the larger ones.
    at_least = (np.arange(ordered.size, -1, -1) / ordered.size) ** trials
    return float(ordered @ -np.diff(at_least))


def score(
    etas: np.ndarray,
    values: np.ndarray,
    capped: np.ndarray,
    smallest: float,
    default: float = np.nan,
    floor: float = 0.0,
) -> Score:
    """Return the scores of one method, which `Sensitivity.table` explains.

    Parameters
    ----------
    etas, values : arrays
        Increasing step sizes, and the value at each; infinite where a run failed.
    capped : array
        The same with the initial value in the place of larger ones.
    smallest : float
        The smallest value of all methods.
    default : float
        The value at the published step size, or NaN.
    floor : float
        Smaller values are not told apart.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([0.4, 0.1, 9.0])
    >>> found = score(np.array([0.1, 1.0, 10.0]), values, np.minimum(values, 1.0), 0.1)
    >>> found["best_eta"], round(found["sensitivity"], 3), round(found["decades_2x"], 3)
    (1.0, 0.4, 0.654)
    """
    counted, smallest = np.maximum(values, floor), max(smallest, floor)
    best = int(np.argmin(counted))
    limits = {name: factor * smallest for name, factor in FACTORS.items()}
    distance = np.abs(np.log10(etas / etas[np.argmin(capped)]))
    near = capped[distance <= CENTERED_DECADES + GRID_ROUNDING]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {
            "best_eta": etas[best] if np.isfinite(values[best]) else np.nan,
            "best_gap": values.min(),
            "default_gap": default,
            "regret": np.maximum(default, floor) / smallest,
            "sensitivity": capped.mean() - capped.min(),
            "centered": near.mean() - capped.min(),
            **{f"expected_best_{k}": expected_best(capped, k) for k in TRIALS},
        }
    return {
        **widths(etas, counted, limits | LEVELS),
        **{name: known(value) for name, value in found.items()},
    }


def widths(etas: np.ndarray, values: np.ndarray, limits: dict[str, float]) -> Score:
    """Return the width of each range in decades, and whether it touches an end of the grid."""
    found = {name: decades(etas, values, limit) for name, limit in limits.items()}
    sizes = {f"decades_{name}": width for name, (width, _) in found.items()}
    return sizes | {f"at_edge_{name}": at_edge for name, (_, at_edge) in found.items()}


def known(value: Any) -> float | None:
    """Return a finite number, or None."""
    return float(value) if np.isfinite(value) else None


# ------------------------------------------------------------------------------ verdict


def verdict(found: Sensitivity) -> list[str]:
    """Return the headline and further sentences, all about last iterates."""
    ranked, gap = found.ranked("last"), found.gap_name.removeprefix("relative ")
    good = [one for one in ranked if one["best_gap"] is not None]
    if not good:
        return [
            "No run has ended well: every rule failed at every step size, from one start at least."
        ]
    width, factor = f"decades_{found.within}", FACTORS[found.within]
    near = f"within {factor:g} times the smallest {gap}"
    tuned, free = ([one for one in ranked if one["free"] == kind] for kind in (False, True))
    sentences = []
    if tuned and len(found.etas) > 1:
        sentences = [f"No rule with a step size is {near} over a range of step sizes."]
        if wide := [one for one in tuned if one[width] > 0]:
            span, rule = np.log10(found.etas[-1] / found.etas[0]), wide[0]["rule"]
            widths = [
                f"{'at least ' * one[f'at_edge_{found.within}']}{one[width]:.1f}" for one in wide
            ]
            second = f"{wide[1]['rule']} over {widths[1]}" if wide[1:] else "no other rule is"
            sentences = [
                f"{rule} is {near} over {widths[0]} of {span:.1f} decades of step sizes, {second}.",
                f"Without tuning, take {rule} with eta near {wide[0]['best_eta']:.2g}.",
            ]
    rules = {one["rule"]: one for one in tuned}
    if found.within == "10x" and {"AdaGradDiff", "AdaGrad"} <= rules.keys():
        sentences.append(_both(rules["AdaGradDiff"], rules["AdaGrad"]))
    best = min(good, key=lambda one: one["best_gap"])
    where = "which has no step size" if best["free"] else f"with eta = {best['best_eta']:.2g}"
    text = f"The smallest {gap} after {found.n_iter} iterations is {best['best_gap']:.1e}"
    sentences.append(f"{text}, that of {best['rule']}, {where}.")
    if free:
        close = [one for one in free if one["regret"] is not None and one["regret"] < factor]
        far = [one for one in free if one not in close and one in good][:NAMED_RULES]
        parts = [f"{_names(close)} {'are' if close[1:] else 'is'} {near}"] if close else []
        parts += [f"{one['rule']} ends at {one['best_gap']:.1e}" for one in far]
        sentences.append(f"Of the rules without a step size, {', '.join(parts)}." if parts else "")
    if failed := [one for one in ranked if one not in good]:
        sentences.append(f"{_names(failed)} failed wherever {'they' if failed[1:] else 'it'} ran.")
    return [sentence for sentence in sentences if sentence]


def _both(*both: Score) -> str:
    """Compare AdaGrad-Diff with AdaGrad at the smallest gap that both reach, or one."""
    for reached in (min, max):
        for level in reversed(LEVELS):
            widths = [one[f"decades_{level}"] for one in both]
            if reached(widths) > 0:
                texts = [
                    f"over {width:.1f} decades" if width > 0 else "nowhere" for width in widths
                ]
                gap = f"{LEVELS[level]:g}"
                return f"AdaGradDiff reaches a gap of {gap} {texts[0]}, AdaGrad {texts[1]}."
    return f"Neither AdaGradDiff nor AdaGrad reaches a gap of {max(LEVELS.values())}."


def _names(scores: list[Score]) -> str:
    *most, last = [one["rule"] for one in scores]
    return f"{', '.join(most)} and {last}" if most else last
