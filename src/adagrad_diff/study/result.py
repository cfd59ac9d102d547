"""What a comparison over step sizes has found, and what follows from it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._messages import require
from .finals import FAILURES
from .scores import ITERATES, Score, scores
from .verdict import verdict

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

GAP_RESOLUTION = 1e-9  # a relative gap below which gaps are not told apart
VALUES = {"last": "objective", "best": "objective_best", "average": "objective_average"}


@dataclass(frozen=True)
class FStar:
    """The smallest value of F, as far as it is known."""

    value: float
    how: str  # "certified", "protocol" or "given"
    sentence: str
    proven: float = 0.0  # how far below the true one it may be, if it is certified


@dataclass(eq=False)
class Sensitivity:
    """The runs of `sensitivity`, their gaps and scores.

    Attributes
    ----------
    data : xarray.Dataset
        The runs, as `sweep` returns them: objectives by rule, eta, seed, iteration. Rules without a step size (`data.free`)
        have the same values at every eta.
    f_star : FStar
        value, how it is known, and a sentence about that.
    scale : float
        What gaps are relative to, and `unit`, its name.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import AdaGrad, AdaGradDiff, Hinge, L1, sensitivity
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((50, 5))
    >>> found = sensitivity(Hinge(A, np.sign(A[:, 0])), L1(0.01), [AdaGradDiff, AdaGrad], starts=2, n_iter=100)
    >>> found.gap("last").sizes
    Frozen({'rule': 2, 'eta': 15, 'seed': 2})
    >>> [score["rule"] for score in found.scores if score["iterate"] == "best"]
    ['AdaGradDiff', 'AdaGrad']
    """

    data: xr.Dataset = field(repr=False)
    f_star: FStar
    scale: float
    unit: str
    loss: Any = field(repr=False)
    penalty: Any = field(repr=False)

    @property
    def rules(self) -> list[str]:
        """The names of the rules."""
        return [str(name) for name in self.data.rule.values]

    @property
    def etas(self) -> np.ndarray:
        """The step sizes, increasing."""
        return np.asarray(self.data.eta.values)

    @property
    def n_iter(self) -> int:
        """The iterations of each run."""
        return int(self.data.iteration[-1])

    @property
    def floor(self) -> float:
        """The relative gap below which gaps are not told apart: F_star is not known any better."""
        return max(GAP_RESOLUTION, self.f_star.proven / self.scale)

    @property
    def gap_name(self) -> str:
        """What gaps are called on figures: they are relative, unless they are F - F_star, as in the paper."""
        return "gap" if self.unit == "1" else "relative gap"

    def gap(self, iterate: str = "last") -> xr.DataArray:
        """(F - F_star) / scale by (rule, eta, seed), infinite where a run failed; the best iterate is one of before that."""
        _check.one_of(iterate, ITERATES, "iterate", "gap")
        name = VALUES[iterate]
        values: xr.DataArray = (
            self.data[name].isel(iteration=-1, drop=True) if iterate == "last" else self.data[name]
        )
        return self._relative(values, None if iterate == "best" else self.data.status)

    def default_gap(self, iterate: str = "last") -> xr.DataArray:
        """The same by (rule, seed) at the published step size; NaN for rules that have a step size, but not such a one."""
        _check.one_of(iterate, ITERATES, "iterate", "default_gap")
        values = self._relative(
            self.data[f"default_{VALUES[iterate]}"],
            None if iterate == "best" else self.data.default_status,
        )
        return values.where(self.data.free | np.isfinite(self.data.published))

    def curve(self) -> xr.DataArray:
        """The gap of the last iterate by (rule, eta, seed, iteration); infinite after a run has failed."""
        return self._relative(self.data.objective, None)

    def _relative(self, values: xr.DataArray, status: Any) -> xr.DataArray:
        ended_well = np.isfinite(values)
        if status is not None:
            ended_well = ended_well & ~status.isin(FAILURES)
        relative: xr.DataArray = (values - self.f_star.value).clip(min=0.0) / self.scale
        return relative.where(ended_well, np.inf)

    @cached_property
    def scores(self) -> list[Score]:
        """One dict per rule and iterate; see `table`."""
        gaps = {name: self.gap(name).values.mean(axis=-1) for name in ITERATES}
        defaults = {name: self.default_gap(name).values.mean(axis=-1) for name in ITERATES}
        free, published = self.data.free.values, self.data.published.values
        return scores(self.rules, self.etas, gaps, defaults, free, published, self.floor)

    def score(self, rule: str, iterate: str = "last") -> Score:
        """The scores of one rule."""
        _check.one_of(rule, tuple(self.rules), "rule", "score")
        _check.one_of(iterate, ITERATES, "iterate", "score")
        return next(
            score for score in self.scores if (score["rule"], score["iterate"]) == (rule, iterate)
        )

    @property
    def verdict(self) -> list[str]:
        """What came out, in sentences; the first is the headline."""
        return verdict(self.scores, self.etas, self.n_iter)

    def table(self, iterate: str | None = None) -> pd.DataFrame:
        """The scores as a pandas DataFrame, of one kind of iterate or of all.

        decades_10x: the length, in log10(eta), of the set of step sizes whose gap (the mean over the starts) is below ten times
        the smallest gap of all rules; at_edge: whether it touches an end of the grid, and may go on there. below_1e-1 ...: the
        same for fixed gaps. best_eta and best_gap; default_eta and default_gap: at the published step size; regret: that gap
        over the smallest of all rules. A rule without a step size is within all decades of the grid, or within none.
        """
        pandas = require("pandas", "paper")
        rows = [score for score in self.scores if iterate in (None, score["iterate"])]
        flat = [
            {name: value for name, value in row.items() if name != "decades_below"}
            | {f"below_{name}": value for name, value in row["decades_below"].items()}
            for row in rows
        ]
        return pandas.DataFrame(flat)

    def __str__(self) -> str:
        from .text import as_text

        return as_text(self)

    def markdown(self, iterate: str = "last") -> str:
        """The table in Markdown."""
        from .text import as_markdown

        return as_markdown(self, iterate)

    def plot(self, iterate: str = "last") -> Figure:
        """A matplotlib figure: the gap against eta, one line per rule, with the range of the starts."""
        from ._figure import draw

        return draw(self, iterate)

    def to_dataset(self) -> xr.Dataset:
        """The runs with gaps (gap_last, gap_best, gap_average, and gap by iteration) beside the objectives."""
        gaps: dict[str, Any] = {f"gap_{name}": self.gap(name) for name in ITERATES}
        about = {
            "f_star": self.f_star.value,
            "f_star_how": self.f_star.how,
            "scale": self.scale,
            "unit": self.unit,
        }
        return self.data.assign(**gaps, gap=self.curve()).assign_attrs(**about)

    def content(
        self, *, title: str | None = None, about: Any = None, command: Any = None
    ) -> dict[str, Any]:
        """Everything that the report page shows, as plain data for JSON.

        Parameters
        ----------
        title : str, optional
            Its headline.
        about : list of (label, text), optional
            What the data are; the loss and the penalty say what they know by default.
        command : list of str, optional
            Lines that run it again.
        """
        from .content import content

        return content(self, title, about, command)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the report, a page of its own; options are those of `content`."""
        from .report import write

        write(path, self.content(**options))
        return Path(path)
