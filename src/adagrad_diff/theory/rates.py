"""The rates of the two theorems, as slopes of log(F(xbar^n) - F_star) against log(n)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._inequality import algorithm_1, bounded, minimiser
from ._run import Run

SMOOTH_SLOPE, NONSMOOTH_SLOPE = (
    -0.9,
    -0.45,
)  # asked of a fit: the theorems say -1 and -1/2 in the limit
DECADE = 10.0  # the fit is over the last decade of iterations


@dataclass(frozen=True, eq=False)
class Rate:
    """How fast the average gets better over the last decade of a run.

    Theorems about limits say nothing about a run that is still on its way. `settled` looks at what their proofs look at:

    - f smooth: the sum of all gaps F(x^k) - F_star is finite, and 1/n is what dividing it by n gives. Settled means that the
      sum grows by less than 7 percent (n^0.03) over the decade.
    - f nonsmooth: the weights grow like sqrt(n). Settled means that the sum of the weights grows like n^0.4 to n^0.6 over the
      decade, and that the gap of the iterates had fallen to a hundredth of the first one before it began.
    """

    n: np.ndarray = field(repr=False)  # 2 ... N+1
    gap: np.ndarray = field(repr=False)  # F(xbar^n) - F_star
    slope: float  # fitted over n in `window`
    needed: float  # -0.9 if f is L-smooth, -0.45 else
    settled: bool  # whether the asymptotic regime is reached
    window: tuple[int, int]
    smooth: bool

    def holds(self) -> bool:
        """Whether the slope is at most what is needed."""
        return self.slope <= self.needed


def rate(run: Run, x_star: Any) -> Rate:
    r"""The slope of F(xbar^n) - F_star over the last decade of a run.

    .. math:: F(\bar x^n) - F_\star = O(1/n) \text{ if f is L-smooth}, \qquad
              O(1/\sqrt n) \text{ if f is Lipschitz and the iterates are bounded}

    Parameters
    ----------
    run : Run
        Of AdaGrad-Diff with a constant eta, at least 40 iterations long.
    x_star : array
        A minimiser of F.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.theory import rate, record
    >>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), [3.0], rule=AdaGradDiff(eta=0.5), iterations=500)
    >>> found = rate(run, [0.6])
    >>> found.settled, found.holds(), round(found.slope, 1)
    (True, True, -2.0)
    """
    owner = "the rate of convergence"
    algorithm_1(run, owner)
    x, F_star, size = minimiser(run, x_star, owner)
    if run.N < 40:
        raise ValueError(
            f"{owner} is fitted over a decade of iterations: record at least 40. Got {run.N}."
        )
    try:
        run.loss.lipschitz()
        smooth = True
    except ValueError:
        smooth = False
        bounded(run, x, owner)
    F, sizes = run.average
    n, gap = np.arange(2, run.N + 2), F - F_star
    # Below rounding there is no slope to be seen; the decade ends before.
    seen = np.flatnonzero(gap <= 10 * run.rounding * (size + sizes))
    last = int(n[seen[0]]) - 1 if seen.size else run.N + 1
    first = max(2, int(last / DECADE))
    if last < 40:
        raise ValueError(
            f"{owner} cannot be seen: the gap is below rounding after {last} iterations."
        )
    at = np.unique(np.geomspace(first, last, 50).astype(int)) - 2
    slope = float(np.polyfit(np.log(n[at]), np.log(gap[at]), 1)[0])
    needed = SMOOTH_SLOPE if smooth else NONSMOOTH_SLOPE
    return Rate(
        n, gap, slope, needed, _settled(run, F_star, first, last, smooth), (first, last), smooth
    )


def _settled(run: Run, F_star: float, first: int, last: int, smooth: bool) -> bool:
    """See `Rate`. Row k belongs to index k + 1."""
    gaps = run.F - F_star
    decade = np.log(last / first)
    if smooth:
        total = np.cumsum(gaps[1:])
        return bool(np.log(total[last - 2] / total[first - 2]) <= 0.03 * decade)
    grown = np.log(run.w[last - 1].sum() / run.w[first - 1].sum()) / decade
    early = np.median(
        gaps[first - 1 : 2 * first]
    )  # iterates of a nonsmooth problem jump: not a single one
    return bool(0.4 <= grown <= 0.6 and early <= 1e-2 * gaps[0])
