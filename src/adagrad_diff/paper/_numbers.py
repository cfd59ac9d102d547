"""The numbers behind the figures: tidy tables, one row per point, from which the figures are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import require
from .protocol import REFERENCE_FACTORS

if TYPE_CHECKING:
    import pandas as pd

    from .protocol import Study

#: What the methods are called on figures and in tables, in the order in which they are drawn.
TITLES_OF_RULES = {"AdaGradDiff": "AdaGrad-Diff", "AdaGrad": "AdaGrad"}


def over_seeds(values: Any, absent: float) -> dict[str, np.ndarray]:
    """Mean, standard deviation (of the seeds there are: divided by their number) and minimum over the last axis.

    One trajectory that has ended is enough for the mean to be `absent`: the mean of the others would flatter the method.

    Examples
    --------
    >>> {name: array.tolist() for name, array in over_seeds([[1.0, 3.0], [1.0, float("nan")]], absent=float("inf")).items()}
    {'mean': [2.0, inf], 'std': [1.0, nan], 'min': [1.0, nan]}
    """
    values = np.asarray(values, np.float64)
    whole = np.isfinite(values).all(axis=-1)
    values = np.where(whole[..., None], values, 0.0)
    with np.errstate(over="ignore"):  # squares of gaps just before a divergence
        return {
            "mean": np.where(whole, values.mean(axis=-1), absent),
            "std": np.where(whole, values.std(axis=-1), np.nan),
            "min": np.where(whole, values.min(axis=-1), np.nan),
        }


def robustness(study: Study) -> pd.DataFrame:
    """Final gap and final mean step against eta."""
    steps = study.grid.mean_step.isel(iteration=-1)
    rows = []
    for rule in TITLES_OF_RULES:
        gap = study.gap.sel(rule=rule).transpose("eta", "seed").values
        step = steps.sel(rule=rule).transpose("eta", "seed").values
        rows.append(
            _rows(study, "robustness", rule, study.grid.eta.values, study.n_iter, gap, step)
        )
    return _join(rows)


def tuned(study: Study) -> pd.DataFrame:
    """Gap and mean step against the iteration, each method at its own best eta."""
    return _join(curve(study, "tuned", rule, study.best_eta[rule]) for rule in TITLES_OF_RULES)


def three_etas(study: Study) -> pd.DataFrame:
    """Gap and mean step against the iteration, both methods at 0.1, 1 and 10 times the reference eta."""
    pairs = list(zip(REFERENCE_FACTORS, study.panel_etas, strict=True))
    return _join(
        curve(study, f"{factor:g} x reference", rule, eta)
        for factor, eta in pairs
        for rule in TITLES_OF_RULES
    )


def curve(study: Study, panel: str, rule: str, eta: float) -> pd.DataFrame:
    """One method at one eta, from the start (iteration 0) on."""
    etas = study.curves.eta.values
    nearest = int(np.argmin(np.abs(np.log(etas / eta))))
    if not np.isclose(etas[nearest], eta, rtol=1e-6):
        raise ValueError(
            f"The curves of {study.name} hold no trajectories with eta = {eta:g}; they have {etas.tolist()}."
        )
    gap = study.curve_gap.sel(rule=rule).isel(eta=nearest).transpose("iteration", "seed").values
    step = (
        study.curves.mean_step.sel(rule=rule)
        .isel(eta=nearest)
        .transpose("iteration", "seed")
        .values
    )
    start = study.curves.objective_start.values - study.F_star
    iteration = np.append(0, study.curves.iteration.values)
    gap, step = (
        np.vstack([start, gap]),
        np.vstack([np.full_like(start, np.nan), step]),
    )  # no step leads to the start
    return _rows(study, panel, rule, eta, iteration, gap, step)


def _rows(
    study: Study, panel: str, rule: str, eta: Any, iteration: Any, gap: np.ndarray, step: np.ndarray
) -> pd.DataFrame:
    pd = require("pandas", "paper")
    about = {
        "panel": panel,
        "problem": study.name,
        "data": study.data,
        "method": TITLES_OF_RULES[rule],
        "eta": eta,
    }
    gaps = {f"gap_{name}": column for name, column in over_seeds(gap, absent=np.inf).items()}
    steps = {f"step_{name}": column for name, column in over_seeds(step, absent=np.nan).items()}
    ended = (~np.isfinite(gap)).sum(axis=-1)
    return pd.DataFrame(
        {
            **about,
            "iteration": iteration,
            **gaps,
            **steps,
            "seeds": gap.shape[-1],
            "diverged": ended,
        }
    )


def _join(rows: Iterable[pd.DataFrame]) -> pd.DataFrame:
    return require("pandas", "paper").concat(list(rows), ignore_index=True)
