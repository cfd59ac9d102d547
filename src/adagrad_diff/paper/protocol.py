"""The protocol of Appendix B: how the paper compares two methods on a problem.

Both methods run from every start at every step size of a grid. F_star is the smallest objective anybody has seen; the best
eta of a method has the smallest final gap, averaged over the starts; the reference eta is the mean of the two best.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._version import __version__
from ..rules import AdaGrad, AdaGradDiff
from ..study.finals import LONGER, final
from .problems import Problem

if TYPE_CHECKING:
    import xarray as xr

#: The methods that are compared, with the paper's eps = 1e-8.
RULES = (AdaGradDiff, AdaGrad)

GRID_LOOKS = 200  # iterations of a run on the grid that are kept, about: enough for its curve on the report page
REFERENCE_FACTORS = (0.1, 1.0, 10.0)  # of the reference eta, in the figures with three panels


@dataclass(eq=False)
class Study:
    """What the protocol found on one problem; everything else follows from `grid`, `curves` and `F_star`.

    Examples
    --------
    >>> from adagrad_diff.paper import lad, study
    >>> found = study(lad(samples=40, features=5, nonzeros=2, n_iter=50, starts=2), etas=6)
    >>> found.best_eta
    {'AdaGradDiff': 0.1, 'AdaGrad': 1.0}
    >>> found.reference_eta
    0.55
    """

    name: str
    title: str
    data: str
    real: bool  # False when the data are a stand-in
    n_iter: int
    paper_eta: float
    choices: dict[str, Any]  # PROBLEMS[name](**choices) is the problem
    grid: xr.Dataset = field(
        repr=False
    )  # on the grid, (rule, eta, seed): some iterations, and the last one
    curves: xr.Dataset = field(repr=False)  # every iteration at the three panels' and the best etas
    F_star: float
    #: How many etas, versions of the packages, hash of the data file: with `choices`, what it takes to run it again.
    provenance: dict[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def gap(self) -> xr.DataArray:
        """F(x) - F_star after the budget, by (rule, eta, seed); infinite where a trajectory failed."""
        return final(self.grid) - self.F_star

    @cached_property
    def mean_gap(self) -> xr.DataArray:
        """The mean of `gap` over the seeds; infinite if one of them failed."""
        return self.gap.mean("seed")

    @cached_property
    def best_eta(self) -> dict[str, float]:
        """The eta of smallest `mean_gap`, by rule."""
        return best_eta(self.grid)

    @property
    def reference_eta(self) -> float:
        """The mean of the best etas of the methods."""
        return float(np.mean(list(self.best_eta.values())))

    @property
    def panel_etas(self) -> tuple[float, float, float]:
        """0.1, 1 and 10 times the reference eta."""
        low, middle, high = (factor * self.reference_eta for factor in REFERENCE_FACTORS)
        return low, middle, high

    @cached_property
    def curve_gap(self) -> xr.DataArray:
        """F(x^{n+1}) - F_star by (rule, eta, seed, iteration); infinite after a trajectory failed.

        `curve_gap.sel(eta=study.reference_eta, method="nearest")` is one panel.
        """
        objective: xr.DataArray = self.curves.objective
        return objective.where(np.isfinite(objective), np.inf) - self.F_star


def study(
    problem: Problem,
    *,
    etas: int = 200,
    checkpoint: str | Path | None = None,
    memory: str | float = "2GB",
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Study:
    r"""Compare AdaGrad-Diff with AdaGrad on a problem by the protocol of Appendix B.

    1. Both methods at every eta of the grid, from every start.
    2. :math:`F_\star`, the smallest objective over all methods, etas, iterations and starts, is refined by running the
       method and eta with the smallest mean final objective for ten times the budget. (The runs of step 3 count as well,
       so that no gap is negative.)
    3. Both methods, every iteration recorded, at their best etas and at 0.1, 1 and 10 times the reference eta.

    Parameters
    ----------
    problem : Problem
        One of `adagrad_diff.paper.problems`.
    etas : int
        Size of the grid.
    checkpoint : path, optional
        A directory in which the three steps keep what is finished. A study that was stopped continues from there with the
        same results, and a complete one is only read.
    memory, n_jobs, progress
        As for `adagrad_diff.sweep`.

    Returns
    -------
    Study

    Examples
    --------
    >>> from adagrad_diff.paper import hinge, study
    >>> found = study(hinge(samples=60, features=8, nonzeros=3, n_iter=100, starts=2), etas=11)
    >>> bool((found.gap >= 0).all()), found.curves.sizes["iteration"]
    (True, 100)
    """
    etas = _check.count(etas, "etas", "study", least=2)

    def run(stage: str, rules: Any, values: Any, n_iter: int, record: int) -> xr.Dataset:
        from ..sweeps import sweep

        return sweep(
            problem.loss,
            problem.penalty,
            rules,
            values,
            problem.x0s,
            n_iter,
            record=record,
            checkpoint=None if checkpoint is None else Path(checkpoint) / stage,
            memory=memory,
            n_jobs=n_jobs,
            keep_x=False,
            averages=stage == "grid",
            progress=progress,
            label=f"{problem.name}: {stage}",
        )

    grid = run("grid", RULES, problem.etas(etas), problem.n_iter, recorded(problem.n_iter))

    mean = final(grid).mean("seed")
    fastest = mean.isel(mean.argmin(("rule", "eta")))
    rule = {rule.__name__: rule for rule in RULES}[str(fastest.rule.item())]
    long = LONGER * problem.n_iter
    refine = run("refine", (rule,), [fastest.eta.item()], long, long)

    best = list(best_eta(grid).values())
    curves = run(
        "curves",
        RULES,
        np.unique([*best, *(factor * np.mean(best) for factor in REFERENCE_FACTORS)]),
        problem.n_iter,
        1,
    )

    return Study(
        name=problem.name,
        title=problem.title,
        data=problem.data,
        real=problem.real,
        n_iter=problem.n_iter,
        paper_eta=problem.paper_eta,
        choices=problem.choices,
        grid=grid,
        curves=curves,
        F_star=min(_smallest(stage) for stage in (grid, refine, curves)),
        provenance={
            "etas": etas,
            "rules": [rule.__name__ for rule in RULES],
            "refined_by": {"rule": rule.__name__, "eta": float(fastest.eta)},
            "sha256": problem.sha256,
            "versions": {
                "adagrad-diff": __version__,
                "python": platform.python_version(),
                **{package: version(package) for package in ("numpy", "scipy", "numba", "xarray")},
            },
        },
    )


def recorded(n_iter: int) -> int:
    """Every how many iterations the runs on the grid are looked at."""
    return max(1, n_iter // GRID_LOOKS)


def best_eta(grid: xr.Dataset) -> dict[str, float]:
    """By rule, the eta with the smallest final objective (or gap: they differ by a constant) averaged over the seeds."""
    mean = final(grid).mean("seed")
    return {
        str(rule): float(grid.eta[int(mean.sel(rule=rule).argmin("eta"))])
        for rule in grid.rule.values
    }


def _smallest(runs: xr.Dataset) -> float:
    """The smallest objective of all iterations, starts included."""
    values = np.concatenate(
        [runs.objective_best.values.ravel(), runs.objective_start.values.ravel()]
    )
    return float(values[np.isfinite(values)].min())
