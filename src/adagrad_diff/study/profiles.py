"""Performance profiles: how often a rule is within a factor of the best, over many problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._messages import require
from .result import Sensitivity
from .scores import ITERATES

if TYPE_CHECKING:
    import xarray as xr

CHOICES = ("best", "default", "any")
FACTORS = np.geomspace(1.0, 1e6, 61)


def profile(
    found: Sequence[Sensitivity], *, iterate: str = "last", eta: str = "any", factors: Any = None
) -> xr.DataArray:
    r"""The share of problems on which a rule's gap is within a factor of the smallest gap of all rules.

    .. math:: \rho_r(\tau) = \frac{|\{p : \text{gap}_{p,r} \le \tau \min_s \text{gap}_{p,s}\}|}{|\{p\}|}

    Parameters
    ----------
    found : list of Sensitivity
        One per problem, all with the same rules.
    iterate : {"last", "best", "average"}
        Whose gap.
    eta : {"any", "best", "default"}
        "best" takes each rule at its best step size, "default" at its published one (a rule that has none is within no factor),
        and with "any" every step size of the grid is a problem of its own: how good is a rule whose step size nobody has tuned?
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
    ...     found.append(sensitivity(LAD(A, A[:, 0]), L1(0.01), [AdaGradDiff, AdaGrad], starts=1, n_iter=50))
    >>> shares = profile(found, eta="best", factors=[1.0, 1e12])
    >>> float(shares.sel(factor=1.0).sum()), shares.sel(factor=1e12).values.tolist()
    (1.0, [1.0, 1.0])

    References
    ----------
    Dolan, More: Benchmarking optimization software with performance profiles, 2002.
    """
    xarray = require("xarray", "sweep")
    _check.one_of(iterate, ITERATES, "iterate", "profile")
    _check.one_of(eta, CHOICES, "eta", "profile")
    found = list(found)
    if not found or not all(isinstance(one, Sensitivity) for one in found):
        raise TypeError(
            "'found' must be a list of what sensitivity returns, with one entry at least."
        )
    rules = found[0].rules
    if strange := next((one.rules for one in found if one.rules != rules), None):
        raise ValueError(f"'found' must have the same rules everywhere. Got {rules} and {strange}.")
    taus = (
        FACTORS
        if factors is None
        else np.array([_check.positive(one, "factors", "profile") for one in np.ravel(factors)])
    )
    ratios = np.concatenate(
        [_ratios(one, iterate, eta) for one in found], axis=1
    )  # (rule, problems)
    shares = (ratios[:, :, None] <= taus).mean(axis=1)
    coords = {"rule": rules, "factor": taus}
    return xarray.DataArray(shares, coords, ("rule", "factor"), name="share")  # type: ignore[no-any-return]


def _ratios(found: Sensitivity, iterate: str, eta: str) -> np.ndarray:
    """The gaps of a problem over the smallest of them; infinite where a run failed, or nothing ran."""
    grid = np.maximum(found.gap(iterate).values.mean(axis=-1), found.floor)
    default = np.maximum(found.default_gap(iterate).values.mean(axis=-1), found.floor)
    smallest = np.nanmin(np.concatenate([grid.ravel(), default]))
    gaps = {"any": grid, "best": grid.min(axis=1, keepdims=True), "default": default[:, None]}[eta]
    if not np.isfinite(smallest):
        return np.full(gaps.shape, np.inf)
    return np.asarray(np.where(np.isfinite(gaps), gaps, np.inf) / smallest)
