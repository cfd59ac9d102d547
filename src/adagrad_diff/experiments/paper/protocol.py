"""The protocol of Appendix B: how the paper compares two methods on a problem.

Both methods run from every start at every step size of a grid. F_star is the smallest objective of
all iterates; the best eta of a method has the smallest final gap, averaged over the starts; the
reference eta is the mean of the two best.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _check
from ..._version import __version__
from ...rules import AdaGrad, AdaGradDiff
from ...sweeps import sweep
from ..convex import sensitivity
from ..result import Sensitivity
from .problems import Problem

if TYPE_CHECKING:
    import xarray as xr

#: The methods that are compared, with the paper's eps = 1e-8.
RULES = (AdaGradDiff, AdaGrad)
TITLES = {"AdaGradDiff": "AdaGrad-Diff", "AdaGrad": "AdaGrad"}  # on figures and in tables
REFERENCE_FACTORS = (0.1, 1.0, 10.0)  # of the reference eta, in the figures with three panels


@dataclass(frozen=True, eq=False, kw_only=True)
class Study(Problem):
    """A problem, and what the protocol found on it: all follows from `comparison` and `curves`.

    Examples
    --------
    >>> from adagrad_diff.experiments.paper import lad, study
    >>> found = study(lad(samples=40, features=5, nonzeros=2, n_iter=50, starts=2), etas=6)
    >>> found.best_eta
    {'AdaGradDiff': 0.1, 'AdaGrad': 1.0}
    >>> found.reference_eta
    0.55
    """

    comparison: Sensitivity = field(repr=False)  # on the grid
    curves: xr.Dataset = field(repr=False)  # every iteration at the three panels' and the best etas
    #: Size of the grid, and versions of packages: with `choices`, what it takes to run it again.
    provenance: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def F_star(self) -> float:
        """The smallest objective of all iterates."""
        return self.comparison.f_star.value

    @property
    def grid(self) -> xr.Dataset:
        """The runs on the grid, by (rule, eta, seed): some iterations, and the last one."""
        return self.comparison.data

    @cached_property
    def gap(self) -> xr.DataArray:
        """F(x) - F_star after the budget, by (rule, eta, seed); inf where a trajectory failed."""
        return self.comparison.gap()

    @cached_property
    def mean_gap(self) -> xr.DataArray:
        """The mean of `gap` over the seeds; infinite if one of them failed."""
        return self.gap.mean("seed")

    @cached_property
    def best_eta(self) -> dict[str, float]:
        """The eta of smallest `mean_gap`, by rule."""
        return best_eta(self.comparison)

    @property
    def reference_eta(self) -> float:
        """The mean of the best etas of the methods."""
        return float(np.mean(list(self.best_eta.values())))

    @property
    def panel_etas(self) -> tuple[float, ...]:
        """0.1, 1 and 10 times the reference eta."""
        return tuple(factor * self.reference_eta for factor in REFERENCE_FACTORS)

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
    2. :math:`F_\star`, the smallest objective over all methods, etas, iterations and starts, is
       refined by running the method and eta with the smallest mean final objective for ten times
       the budget. (The runs of step 3 count as well, so that no gap is negative.)
    3. Both methods, every iteration recorded, at their best etas and at 0.1, 1 and 10 times the
       reference eta.

    Parameters
    ----------
    problem : Problem
        One of `adagrad_diff.experiments.paper.problems`.
    etas : int
        Size of the grid.
    checkpoint : path, optional
        A directory in which the three steps store finished work. A study that was stopped resumes
        from there with the same results, and a complete one is only read.
    memory, n_jobs, progress
        As for `adagrad_diff.sweep`.

    Returns
    -------
    Study

    Examples
    --------
    >>> from adagrad_diff.experiments.paper import hinge, study
    >>> found = study(hinge(samples=60, features=8, nonzeros=3, n_iter=100, starts=2), etas=11)
    >>> bool((found.gap >= 0).all()), found.curves.sizes["iteration"]
    (True, 100)
    """
    etas = _check.count(etas, "etas", "study", least=2)
    runs: dict[str, Any] = {"memory": memory, "n_jobs": n_jobs, "progress": progress}
    f, phi, x0s, n_iter = problem.loss, problem.penalty, problem.x0s, problem.n_iter
    grid, folder = problem.etas(etas), None if checkpoint is None else Path(checkpoint)
    found = sensitivity(
        f, phi, RULES, grid, x0s, n_iter, f_star="protocol", checkpoint=folder, **runs
    )
    best = list(best_eta(found).values())
    panels = np.unique([*best, *(factor * np.mean(best) for factor in REFERENCE_FACTORS)])
    place = None if folder is None else folder / "curves"
    curves = sweep(f, phi, RULES, panels, x0s, n_iter, keep_x=False, checkpoint=place, **runs)
    f_star = replace(
        found.f_star, value=min(found.f_star.value, float(curves.objective_best.min()))
    )
    return Study(
        **vars(problem),
        comparison=replace(found, f_star=f_star, scale=1.0, unit="1", gap_name="gap"),
        curves=curves,
        provenance={
            "data": problem.data,
            "etas": etas,
            "choices": problem.choices,
            "sha256": problem.sha256,
            "F_star": f_star.value,
            "versions": {
                "adagrad-diff": __version__,
                "python": platform.python_version(),
                **{package: version(package) for package in ("numpy", "scipy", "numba", "xarray")},
            },
        },
    )


def best_eta(found: Sensitivity) -> dict[str, float]:
    """Return the eta with the smallest final gap, averaged over the seeds, by rule."""
    means = found.gap().mean("seed")
    return {rule: float(found.etas[means.sel(rule=rule).argmin("eta")]) for rule in found.rules}
