"""A sweep that was run already, as a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .result import FStar, Sensitivity
from .style import SHOWN_POINTS, thin

if TYPE_CHECKING:
    import xarray as xr


def of_sweep(runs: xr.Dataset, f_star: FStar, loss: Any = None, penalty: Any = None) -> Sensitivity:
    """The comparison that a sweep with averages is: gaps are F - F_star, and nothing is said of published step sizes.

    Parameters
    ----------
    runs : xarray.Dataset
        What ``sweep(..., averages=True)`` returns, of rules that have a step size.
    f_star : FStar
        The smallest value of F, and how it is known.
    loss, penalty : optional
        What `content` shows, unless it is given texts of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import LAD, AdaGrad, AdaGradDiff, sweep
    >>> A = np.random.default_rng(0).standard_normal((30, 3))
    >>> runs = sweep(LAD(A, A[:, 0]), None, [AdaGradDiff, AdaGrad], [0.01, 0.1, 1.0], np.zeros((3, 1)), 50, averages=True)
    >>> of_sweep(runs, FStar(0.0, "given", "The model is exact.")).etas.tolist()
    [0.01, 0.1, 1.0]
    """
    runs = runs.sortby("eta")
    data = runs.isel(iteration=thin(runs.sizes["iteration"], SHOWN_POINTS))
    rules, blank = data.sizes["rule"], np.full((data.sizes["rule"], data.sizes["seed"]), np.nan)
    data = data.assign_coords(
        free=("rule", np.zeros(rules, bool)), published=("rule", np.full(rules, np.nan))
    )
    names = ("objective", "objective_best", "objective_average", "status")
    data = data.assign({f"default_{name}": (("rule", "seed"), blank) for name in names})
    return Sensitivity(data, f_star, 1.0, "1", loss, penalty)
