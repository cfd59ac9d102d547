"""What runs have come to in the end, and for how long the best one goes on to find F_star."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..solvers.result import Status

if TYPE_CHECKING:
    import xarray as xr

LONGER = 10  # budgets of the run that refines F_star, in the paper's protocol
FAILURES = (int(Status.NOT_FINITE), int(Status.DIVERGED))


def final(runs: xr.Dataset) -> xr.DataArray:
    """F(x) after the budget, by (rule, eta, seed); infinite where a trajectory failed."""
    objective: xr.DataArray = runs.objective.isel(iteration=-1, drop=True)
    return objective.where(np.isfinite(objective) & ~runs.status.isin(FAILURES), np.inf)
