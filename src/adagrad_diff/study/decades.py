"""How wide a range of good step sizes is."""

from __future__ import annotations

from typing import Any

import numpy as np


def decades(etas: Any, gaps: Any, threshold: float) -> tuple[float, bool]:
    r"""The length of the set of step sizes with a gap below a threshold, in decades.

    .. math:: \Big|\{ \log_{10} \eta : \text{gap}(\eta) < \text{threshold} \}\Big|

    Between the points of the grid, log(gap) is linear in log(eta). Next to an infinite gap (a trajectory that diverged)
    nothing is below the threshold but the other end of the interval itself. A set in several pieces has the sum of their
    lengths.

    Parameters
    ----------
    etas : array
        Increasing positive step sizes.
    gaps : array
        One gap per eta, >= 0; infinite where a trajectory diverged.
    threshold : float
        If it is zero, no gap is below.

    Returns
    -------
    length : float
    at_edge : bool
        Whether the gap is below the threshold at an end of the grid. Then the set may go on outside it, and the length is
        a lower bound.

    Examples
    --------
    >>> decades([0.01, 0.1, 1.0, 10.0], [1.0, 1e-2, 1.0, float("inf")], threshold=0.1)
    (1.0, False)
    >>> decades([0.01, 0.1, 1.0], [1e-3, 1e-2, 1.0], threshold=0.1)
    (1.5, True)
    """
    etas, gaps = np.asarray(etas, np.float64), np.asarray(gaps, np.float64)
    if etas.ndim != 1 or etas.shape != gaps.shape or not etas.size:
        raise ValueError(
            f"'etas' and 'gaps' must be vectors of the same length. Got shapes {etas.shape} and {gaps.shape}."
        )
    if not (etas > 0).all() or not (np.diff(etas) > 0).all():
        raise ValueError(
            "'etas' must be positive and increasing: sort them, with their gaps, first."
        )
    if not (gaps >= 0).all():
        raise ValueError(
            "'gaps' must be numbers >= 0, or infinite. Got a negative number or NaN: is the optimum the smallest value?"
        )
    if not threshold > 0:
        return 0.0, False
    with np.errstate(divide="ignore"):
        height = np.log(gaps) - np.log(threshold)  # negative where the gap is below
    left, right = height[:-1], height[1:]
    share = ((left < 0) & (right < 0)).astype(np.float64)  # of each interval
    crossing = (left < 0) != (right < 0)
    inside, outside = np.minimum(left, right)[crossing], np.maximum(left, right)[crossing]
    # From a gap of zero (minus infinity) a line gets to the threshold only at its other end, to an infinite gap at once;
    # from the one to the other it may be anywhere, and counts as half.
    zero, infinite = np.isneginf(inside), np.isposinf(outside)
    with np.errstate(invalid="ignore"):
        share[crossing] = np.select(
            [zero & infinite, zero], [0.5, 1.0], inside / (inside - outside)
        )
    return float(share @ np.diff(np.log10(etas))), bool(height[0] < 0 or height[-1] < 0)
