"""Performance profiles: how often a rule is within a factor of the best, over many problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._messages import require
from .result import VALUES, Sensitivity

if TYPE_CHECKING:
    import xarray as xr

CHOICES = ("best", "default", "any")
PROFILE_FACTORS = np.geomspace(1.0, 1e6, 61)


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
    _check.one_of(eta, CHOICES, "eta", "profile")
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
