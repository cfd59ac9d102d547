"""What comparisons over step sizes have found, and performance profiles over many problems."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._messages import require
from ..solvers.result import Status
from .scores import Score, known, score, verdict

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

GAP_RESOLUTION = 1e-9  # relative gaps below this value are not told apart
VALUES = {"last": "objective", "best": "objective_best", "average": "objective_average"}
ETA_CHOICES = ("best", "default", "any")  # of `profile`
PROFILE_FACTORS = np.geomspace(1.0, 1e6, 61)  # times the smallest gap
FAILURES = (int(Status.NOT_FINITE), int(Status.DIVERGED))


@dataclass(frozen=True)
class FStar:
    """The smallest value of F, as far as it is known."""

    value: float
    how: str  # "certified", "protocol" or "given"
    sentence: str
    proven: float = 0.0  # how far below the true optimum it may be, if it is certified


@dataclass(eq=False)
class Sensitivity:
    """The runs of `sensitivity`, their gaps and scores.

    Attributes
    ----------
    data : xarray.Dataset
        The runs, as `sweep` returns them: objectives by rule, eta, seed, iteration. Rules without a
        step size (`data.free`) have the same values at every eta.
    defaults : xarray.Dataset
        The results at published step sizes (`data.published`) and of rules without a step size, by
        rule and seed.
    f_star : FStar
        The value, how it is known, and a sentence about that.
    scale : float
        What gaps are relative to, and `unit`, its name.
    within : str
        The range that rules are ranked by: "10x", within ten times the smallest gap, or "2x".

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import AdaGrad, AdaGradDiff, Hinge, L1, sensitivity
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((50, 5))
    >>> loss = Hinge(A, np.sign(A[:, 0]))
    >>> found = sensitivity(loss, L1(0.01), [AdaGradDiff, AdaGrad], starts=2, n_iter=100)
    >>> found.gap("last").sizes
    Frozen({'rule': 2, 'eta': 15, 'seed': 2})
    >>> [score["rule"] for score in found.scores if score["iterate"] == "best"]
    ['AdaGradDiff', 'AdaGrad']
    """

    data: xr.Dataset = field(repr=False)
    defaults: xr.Dataset = field(repr=False)
    f_star: FStar
    scale: float = 1.0
    unit: str = "1"
    gap_name: str = "relative gap"  # on figures
    title: str = ""
    about: list[list[str]] = field(default_factory=list, repr=False)  # labels and texts
    command: list[str] = field(default_factory=list, repr=False)  # lines that run it again
    within: str = "10x"
    failed_gap: float = np.inf  # of runs that failed

    @property
    def rules(self) -> list[str]:
        """The names of the rules."""
        return [str(name) for name in self.data.rule.values]

    @property
    def etas(self) -> np.ndarray:
        """The step sizes, increasing."""
        return np.asarray(self.data.eta.values)

    @property
    def iterates(self) -> list[str]:
        """The kinds of iterates that were measured: "last", "best", "average"."""
        return [name for name, variable in VALUES.items() if variable in self.data]

    @property
    def n_iter(self) -> int:
        """The iterations of each run."""
        return int(self.data.iteration[-1])

    @property
    def failed(self) -> xr.DataArray:
        """Which runs failed, by (rule, eta, seed)."""
        failed: xr.DataArray = self.data.status.isin(FAILURES)
        return failed

    @property
    def floor(self) -> float:
        """Gaps below this value are not told apart: F_star is not known any better."""
        return max(GAP_RESOLUTION, self.f_star.proven / self.scale)

    def gap(self, iterate: str = "last") -> xr.DataArray:
        """Return (F - F_star) / scale by (rule, eta, seed), infinite where a run failed.

        The best iterate is one of those before the failure.
        """
        return self._gap(self.data, iterate, "gap")

    def default_gap(self, iterate: str = "last") -> xr.DataArray:
        """Return the same by (rule, seed) at the published step size; NaN if there is none."""
        has_default = self.data.free | np.isfinite(self.data.published)
        return self._gap(self.defaults, iterate, "default_gap").where(has_default)

    def curve(self) -> xr.DataArray:
        """Return the gap of the last iterate by (rule, eta, seed, iteration)."""
        return self._relative(self.data.objective, True)

    def _gap(self, runs: xr.Dataset, iterate: str, owner: str) -> xr.DataArray:
        _check.one_of(iterate, tuple(self.iterates), "iterate", owner)
        values = runs[VALUES[iterate]]
        if iterate == "last":
            values = values.isel(iteration=-1, drop=True)
        return self._relative(values, (iterate == "best") | ~runs.status.isin(FAILURES))

    def _relative(self, values: xr.DataArray, ended_well: Any) -> xr.DataArray:
        relative: xr.DataArray = (values - self.f_star.value).clip(min=0.0) / self.scale
        return relative.where(ended_well & np.isfinite(values), self.failed_gap)

    @cached_property
    def scores(self) -> list[Score]:
        """One dict per rule and iterate; see `table`."""
        start, found = self._relative(self.data.objective_start, True), []
        for iterate in self.iterates:
            each, default = self.gap(iterate), self.default_gap(iterate).mean("seed").values
            gaps, capped = (part.mean("seed").values for part in (each, each.clip(max=start)))
            smallest = np.nanmin([*gaps.ravel(), *default])
            for k, rule in enumerate(self.rules):
                free, eta = bool(self.data.free[k]), known(self.data.published[k])
                one = {"rule": rule, "iterate": iterate, "free": free, "default_eta": eta}
                one |= score(self.etas, gaps[k], capped[k], smallest, default[k], self.floor)
                found.append(one | {"best_eta": None} if free else one)
        return found

    def score(self, rule: str, iterate: str = "last") -> Score:
        """Return the scores of one rule."""
        _check.one_of(rule, tuple(self.rules), "rule", "score")
        _check.one_of(iterate, tuple(self.iterates), "iterate", "score")
        return next(one for one in self.ranked(iterate) if one["rule"] == rule)

    def ranked(self, iterate: str = "last") -> list[Score]:
        """Return the scores of all rules, the widest range of good step sizes first.

        Rules without a step size come last.
        """
        width = f"decades_{self.within}"

        def merit(one: Score) -> tuple[bool, float, float]:
            gap = np.inf if one["best_gap"] is None else one["best_gap"]
            return one["free"], -one[width] * (not one["free"]), gap

        return sorted((one for one in self.scores if one["iterate"] == iterate), key=merit)

    @property
    def verdict(self) -> list[str]:
        """What came out, in sentences; the first is the headline."""
        return verdict(self)

    def table(self, iterate: str | None = None) -> pd.DataFrame:
        """Return the scores as a pandas DataFrame, of one kind of iterate or of all.

        - decades_10x, decades_2x, decades_1.1x: the length, in log10(eta), of the set of step sizes
          whose gap (the mean over the starts) is below that many times the smallest gap of all
          rules; decades_below_1e-1 ...: the same for fixed gaps. at_edge_...: whether the range
          touches an end of the grid, and may go on there. A rule without a step size is within all
          decades of the grid, or within none.
        - best_eta and best_gap; default_eta and default_gap: at the published step size; regret:
          that gap over the smallest of all rules.
        - sensitivity (Wortsman et al. 2023): the mean over the grid of min(gap, gap at the start),
          minus the best gap. centered: the same over step sizes within a decade of the best one.
        - expected_best_1, ...: the expected best gap after so many random step sizes of the grid.
        """
        rows = [one for one in self.scores if iterate in (None, one["iterate"])]
        return require("pandas", "paper").DataFrame(rows)

    def __str__(self) -> str:
        from .tables import as_text

        return as_text(self)

    def markdown(self, iterate: str = "last") -> str:
        """Return the table in Markdown."""
        from .tables import as_markdown

        return as_markdown(self, iterate)

    def plot(self, iterate: str = "last") -> Figure:
        """Return a matplotlib figure: the gap against eta, with the range over the starts."""
        from .figures import plot_gaps

        return plot_gaps(self, iterate)

    def to_dataset(self) -> xr.Dataset:
        """Return the runs with gap_last, gap_best, gap_average, and gap by iteration."""
        gaps: dict[str, Any] = {f"gap_{name}": self.gap(name) for name in self.iterates}
        about = {"f_star": self.f_star.value, "f_star_how": self.f_star.how}
        about |= {"scale": self.scale, "unit": self.unit}
        return self.data.assign(**gaps, gap=self.curve()).assign_attrs(**about)

    def content(
        self, *, title: str | None = None, about: Any = None, command: Any = None
    ) -> dict[str, Any]:
        """Return everything that the report page shows, as plain data for JSON.

        Parameters
        ----------
        title : str, optional
            Its headline.
        about : list of (label, text), optional
            What the data are.
        command : list of str, optional
            Lines that run it again.
        """
        from .report import content

        return content(self, title or self.title, about or self.about, command or self.command)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the report, an HTML page; options are those of `content`."""
        from .report import write

        return write(path, self.content(**options))


def profile(
    found: Sequence[Sensitivity], *, iterate: str = "last", eta: str = "any", factors: Any = None
) -> xr.DataArray:
    r"""Return the share of problems where a rule's gap is within a factor of the smallest gap.

    .. math:: \rho_r(\tau) = \frac{|\{p : \text{gap}_{p,r} \le \tau \min_s \text{gap}_{p,s}\}|}
              {|\{p\}|}

    Parameters
    ----------
    found : list of Sensitivity
        One per problem, all with the same rules.
    iterate : {"last", "best", "average"}
        Whose gap.
    eta : {"any", "best", "default"}
        "best" takes each rule at its best step size, "default" at its published one (a rule
        that has none is within no factor). With "any" every step size of the grid counts as a
        problem, which shows how good a rule is without tuning.
    factors : array, optional
        tau, from 1 to 1e6 by default.

    Returns
    -------
    xarray.DataArray
        The shares, by rule and factor.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, LAD, AdaGrad, AdaGradDiff, profile, sensitivity
    >>> found = []
    >>> for seed in range(2):
    ...     A = np.random.default_rng(seed).standard_normal((40, 4))
    ...     loss, rules = LAD(A, A[:, 0]), [AdaGradDiff, AdaGrad]
    ...     found.append(sensitivity(loss, L1(0.01), rules, starts=1, n_iter=50))
    >>> shares = profile(found, eta="best", factors=[1.0, 1e12])
    >>> float(shares.sel(factor=1.0).sum()), shares.sel(factor=1e12).values.tolist()
    (1.0, [1.0, 1.0])

    References
    ----------
    Dolan, More: Benchmarking optimization software with performance profiles, 2002.
    """
    xarray = require("xarray", "sweep")
    _check.one_of(iterate, tuple(VALUES), "iterate", "profile")
    _check.one_of(eta, ETA_CHOICES, "eta", "profile")
    found = list(found)
    if not found or not all(isinstance(one, Sensitivity) for one in found):
        raise TypeError(
            "'found' must be a list of what sensitivity returns, with one entry at least."
        )
    rules = found[0].rules
    if any(one.rules != rules for one in found):
        raise ValueError("'found' must have the same rules everywhere.")
    factors = np.ravel(PROFILE_FACTORS if factors is None else factors)
    ratios = np.concatenate([_ratios(one, iterate, eta) for one in found], axis=1)
    shares = (ratios[:, :, None] <= factors).mean(axis=1)
    coords = {"rule": rules, "factor": factors}
    array = xarray.DataArray(shares, coords, ("rule", "factor"), name="share")
    return array  # type: ignore[no-any-return]


def _ratios(found: Sensitivity, iterate: str, eta: str) -> np.ndarray:
    """Return gaps over the smallest of all, by rule and problem; infinite where a run failed."""
    grid = np.maximum(found.gap(iterate).mean("seed").values, found.floor)
    default = np.maximum(found.default_gap(iterate).mean("seed").values, found.floor)
    smallest = np.nanmin([*grid.ravel(), *default])
    gaps = {"any": grid, "best": grid.min(axis=1, keepdims=True), "default": default[:, None]}[eta]
    with np.errstate(invalid="ignore"):  # if all of them are infinite
        return np.asarray(np.nan_to_num(gaps / smallest, nan=np.inf, posinf=np.inf))
