"""The runs of a comparison: rules with a step size over a grid, the others once, all of them in one data set."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..losses import Loss
from ..penalties import Penalty
from ..solvers.result import Interrupted
from ..sweeps import sweep
from ._contenders import Contender
from ._optimum import STAGE
from .style import SHOWN_POINTS, thin

if TYPE_CHECKING:
    import xarray as xr

RUN_LOOKS = 500  # iterations that a sweep records, about
LAST_VALUES = (
    "objective_best",
    "objective_average",
    "status",
    "nit",
)  # beside the objective of the last iterate
ANY_ETA = 1.0  # a sweep wants one; a rule without a step size does not look at it


@dataclass(frozen=True)
class Plan:
    """What all the sweeps of a comparison share."""

    loss: Loss
    penalty: Penalty
    starts: np.ndarray
    n_iter: int
    checkpoint: Path | None
    options: dict[str, Any]  # of `sweep`: memory, n_jobs, progress, client

    def run(
        self, stage: str, contenders: list[Contender], etas: Any, longer: int = 1
    ) -> xr.Dataset:
        """A sweep, with a checkpoint of its own."""
        n_iter = longer * self.n_iter
        try:
            return sweep(
                self.loss,
                self.penalty,
                {one.name: one.make for one in contenders},
                etas,
                self.starts,
                n_iter,
                record=max(1, n_iter // RUN_LOOKS),
                checkpoint=None
                if self.checkpoint is None
                else self.checkpoint / f"{STAGE}{stage.replace(' ', '-')}",
                keep_x=False,
                averages=True,
                label=stage,
                **self.options,
            )
        except Interrupted as error:
            again = (
                "begins anew; with a directory as 'checkpoint' it would go on"
                if self.checkpoint is None
                else "goes on"
            )
            raise Interrupted(
                f"The comparison was interrupted while it ran {stage}. The same call {again}.",
                error.result,
            ) from error


def all_runs(plan: Plan, contenders: list[Contender], etas: np.ndarray) -> xr.Dataset:
    """Every rule with every eta from every start; a rule without a step size has the same values at every eta.

    `default_...` are those at the published step sizes, of rules that have one, and of rules that have no step size.
    """
    import xarray as xr

    tuned, free = (
        [one for one in contenders if not one.free],
        [one for one in contenders if one.free],
    )
    parts = []
    if tuned:
        parts.append(_kept(plan.run("rules with a step size", tuned, etas)))
    if free:
        once = _kept(plan.run("rules without a step size", free, [ANY_ETA]))
        parts.append(once.isel(eta=np.zeros(etas.size, int)).assign_coords(eta=etas))
    attrs = parts[0].attrs
    data = xr.concat(
        parts, "rule", data_vars="minimal", coords="minimal", compat="override", join="exact"
    )
    names = [one.name for one in contenders]
    data = data.sel(rule=names)
    data = data.assign_coords(
        free=("rule", [one.free for one in contenders]),
        published=(
            "rule",
            [np.nan if one.published is None else one.published for one in contenders],
        ),
    )
    missing = sorted(
        {
            one.published
            for one in tuned
            if one.published is not None and _nearest(etas, one.published) is None
        }
    )
    extra = {}
    for eta in missing:
        users = [one for one in tuned if one.published == eta]
        extra[eta] = _kept(plan.run(f"published step size {eta:g}", users, [eta]))
    for variable in ("objective", *LAST_VALUES):
        values = _at_defaults(data, extra, contenders, etas, variable)
        data[f"default_{variable}"] = (("rule", "seed"), values)
    data.attrs = {name: attrs[name] for name in ("adagrad_diff", "numpy")}
    data.attrs["problem"] = json.dumps(
        {part: json.loads(attrs["problem"])[part] for part in ("loss", "penalty")}
    )
    return data


def _kept(runs: xr.Dataset) -> xr.Dataset:
    """Of the iterations, as many as are shown."""
    return runs.isel(iteration=thin(runs.sizes["iteration"], SHOWN_POINTS)).drop_vars("start")


def _nearest(etas: np.ndarray, eta: float) -> int | None:
    """Where a step size is in the grid, if it is."""
    where = np.flatnonzero(np.isclose(etas, eta, rtol=1e-6, atol=0.0))
    return int(where[0]) if where.size else None


def _at_defaults(
    data: xr.Dataset, extra: dict[float, xr.Dataset], rules: list[Contender], etas: Any, name: str
) -> Any:
    values = np.full((len(rules), data.sizes["seed"]), np.nan)
    for row, one in enumerate(rules):
        if one.free:
            found = data[name].sel(rule=one.name).isel(eta=0)
        elif one.published is None:
            continue
        elif (where := _nearest(etas, one.published)) is not None:
            found = data[name].sel(rule=one.name).isel(eta=where)
        else:
            found = extra[one.published][name].sel(rule=one.name).isel(eta=0)
        values[row] = (
            found.values if found.ndim == 1 else found.transpose("seed", "iteration").values[:, -1]
        )
    return values


def refined(
    plan: Plan,
    contenders: list[Contender],
    data: xr.Dataset,
    final: Callable[..., Any],
    longer: int,
) -> Any:
    """The runs from all starts of the rule and the eta whose last iterates are best, for a longer time; None if all failed."""
    mean = final(data).mean("seed")
    if not np.isfinite(mean).any():
        return None
    where = mean.argmin(("rule", "eta"))
    fastest = contenders[int(where["rule"])]
    eta = ANY_ETA if fastest.free else float(data.eta[where["eta"]])
    return fastest, eta, plan.run("refinement of the optimum", [fastest], [eta], longer)
