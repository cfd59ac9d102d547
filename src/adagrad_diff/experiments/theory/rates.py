"""The rates of the two theorems, as slopes of log(F(xbar^n) - F_star) against log(n)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...rules import AdaGradDiff
from .comparison import check_rule, minimizer
from .run import Run

STATEMENT = "rate of convergence"  # in messages
SMOOTH_SLOPE, NONSMOOTH_SLOPE = -0.9, -0.45  # of a fit; the theorems say -1 and -1/2 in the limit
DECADE = 10.0  # the fit is over the last decade of iterations
SHORTEST = 40  # iterations of a run with a slope
FITTED = 50  # points of the fit
NOISE = 10  # rounding errors below which a gap is not seen
DRIFT = 1.01  # growth of the distance to the minimizer that counts as bounded


@dataclass(frozen=True, eq=False, repr=False)
class Rate:
    """How fast the average gets better over the last decade of a run.

    Theorems about limits say nothing about a run that is still on its way. `settled` checks what
    their proofs use:

    - f smooth: the sum of all gaps F(x^k) - F_star is finite, and dividing it by n gives 1/n.
      Settled means that the sum grows by less than 7 percent (n^0.03) over the decade.
    - f nonsmooth: the weights grow like sqrt(n). Settled means that the sum of the weights grows
      like n^0.4 to n^0.6 over the decade, and that the gap of the iterates had fallen to a
      hundredth of the first one before it began.
    """

    n: np.ndarray  # 2 ... N+1
    gap: np.ndarray  # F(xbar^n) - F_star
    slope: float  # fitted over n in `window`
    needed: float  # -0.9 if f is L-smooth, else -0.45
    settled: bool  # whether the asymptotic regime is reached
    window: tuple[int, int]
    smooth: bool

    def holds(self) -> bool:
        """Return whether the slope is at most what is needed."""
        return self.slope <= self.needed


def rate(run: Run, x_star: Any) -> Rate:
    r"""Return the slope of F(xbar^n) - F_star over the last decade of a run.

    .. math:: F(\bar x^n) - F_\star = O(1/n) \text{ if f is L-smooth}, \qquad
              O(1/\sqrt n) \text{ if f is Lipschitz and the iterates are bounded}

    Parameters
    ----------
    run : Run
        Of AdaGrad-Diff with a constant eta, at least 40 iterations long.
    x_star : array
        A minimizer of F.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.experiments.theory import rate, record
    >>> loss = Squared([[1.0], [2.0]], [1.0, 1.0])
    >>> found = rate(record(loss, [3.0], rule=AdaGradDiff(eta=0.5), iterations=500), [0.6])
    >>> found.settled, found.holds(), round(found.slope, 1)
    (True, True, -2.0)
    """
    check_rule(run, AdaGradDiff, STATEMENT, constant=True)
    x, F_star, size = minimizer(run, x_star, STATEMENT)
    if run.N < SHORTEST:
        raise ValueError(
            f"{STATEMENT!r} is fitted over a decade of steps: record at least {SHORTEST}. "
            f"Got {run.N}."
        )
    try:
        run.loss.lipschitz()
        smooth = True
    except ValueError:
        smooth = False
        _check_bounded(run, x)
    F, sizes = run.average
    n, gap = np.arange(2, run.N + 2), F - F_star
    # The decade ends before gaps fall below rounding errors.
    hidden = np.flatnonzero(gap <= NOISE * run.rounding * (size + sizes))
    last = int(n[hidden[0]]) - 1 if hidden.size else run.N + 1
    first = max(2, int(last / DECADE))
    if last < SHORTEST:
        raise ValueError(
            f"{STATEMENT!r} cannot be seen: the gap is below rounding after {last} iterations."
        )
    at = np.unique(np.geomspace(first, last, FITTED).astype(int)) - 2
    slope = float(np.polyfit(np.log(n[at]), np.log(gap[at]), 1)[0])
    gaps, decade = run.F - F_star, np.log(last / first)  # row k belongs to index k + 1
    if smooth:
        total = np.cumsum(gaps[1:])
        settled = np.log(total[last - 2] / total[first - 2]) <= 0.03 * decade
    else:
        grown = np.log(run.w[last - 1].sum() / run.w[first - 1].sum()) / decade
        # A median, because the iterates of nonsmooth problems jump.
        early = np.median(gaps[first - 1 : 2 * first])
        settled = 0.4 <= grown <= 0.6 and early <= 1e-2 * gaps[0]
    needed = SMOOTH_SLOPE if smooth else NONSMOOTH_SLOPE
    return Rate(n, gap, slope, needed, bool(settled), (first, last), smooth)


def _check_bounded(run: Run, x_star: np.ndarray) -> None:
    """Raise if the iterates still move away: no finite run shows more than that."""
    distance = np.linalg.norm(run.x - x_star, axis=1)
    half = len(distance) // 2
    early, late = distance[:half].max(), distance[half:].max()
    if late > DRIFT * early:
        raise ValueError(
            f"{STATEMENT!r} needs bounded iterates; here the distance to the minimizer grows: "
            f"up to {early:.3g} in the first half of the run, {late:.3g} in the second."
        )
