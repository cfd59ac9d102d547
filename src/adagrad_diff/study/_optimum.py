"""F_star: proven if that can be done, else the smallest value that anybody has seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import InputError
from .._files import read_text, write
from ..certificates import dual_of
from ..losses import Loss
from ..penalties import Penalty
from ..solvers import minimize
from ..solvers.fingerprint import describe, difference
from .finals import LONGER

if TYPE_CHECKING:
    import xarray as xr

PROOF_ITERATIONS = 1000  # iterations that a proof may take in any case
PROOF_DOUBLE, PROOF_SINGLE = (
    1e-9,
    1e-6,
)  # to which it is proven, relative, in double and in single precision
OPTIMUM = "optimum.json"  # where a checkpoint keeps it
SEARCH = "optimum.npz"  # and how far the search for it is
STAGE = "stage-"  # how the directories of a checkpoint begin


@dataclass(frozen=True)
class Optimum:
    """What is known of the smallest value of F before the comparison."""

    value: float  # a proven lower bound, at most `proven` below F_star; NaN if nothing is proven
    proven: float
    reason: str  # why nothing is proven
    size: float  # the largest coordinate of a minimiser, about: step sizes are measured in it


def look_for(
    loss: Loss, penalty: Penalty, starts: np.ndarray, n_iter: int, checkpoint: Path | None = None
) -> Optimum:
    """The optimum by `minimize` without a step size, its certificate and its finish."""
    dual = dual_of(loss, penalty)
    x0 = np.zeros(loss.shape) if loss.shape is not None else starts[..., 0]
    if isinstance(dual, str):
        largest = float(np.abs(starts).max())
        return Optimum(
            np.nan,
            np.inf,
            dual,
            (largest or 1.0) if loss.shape is None else loss.coordinates().unit,
        )
    if not np.isfinite(penalty.value((x0[:-1] if loss.intercept else x0).reshape(-1))):
        x0 = starts[..., 0]  # which has been made feasible
    tol, longer = (
        PROOF_SINGLE if loss.dtype == np.float32 else PROOF_DOUBLE,
        max(PROOF_ITERATIONS, LONGER * n_iter),
    )
    found = minimize(
        loss,
        x0,
        penalty,
        tol=tol,
        max_iter=longer,
        history=0,
        on_failure="ignore",
        checkpoint=checkpoint,
    )
    size = float(np.abs(found.x).max())
    size = size if np.isfinite(size) and size > 0 else loss.coordinates().unit
    if found.success and found.certified and np.isfinite(found.bound):
        return Optimum(float(found.bound), float(found.gap), "", size)
    return Optimum(
        np.nan, np.inf, f"a relative gap of {tol:g} was not proven within {longer} iterations", size
    )


def refuse_others(folder: Path) -> None:
    """Raise if the checkpoint is a directory that something else has written."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if names and not any(name.startswith((OPTIMUM, SEARCH, STAGE)) for name in names):
        raise InputError(
            f"'checkpoint' must be an empty or new directory, or one that sensitivity has written. {folder} holds {names[0]!r}."
        )


def kept(path: Path | None, problem: Any, compute: Callable[[Path | None], Optimum]) -> Optimum:
    """The optimum of an earlier call, if there is a checkpoint: a grid that is chosen by it must not move."""
    if path is None:
        return compute(None)
    search = path.with_name(SEARCH)
    about = json.loads(json.dumps(describe(problem)))
    if path.exists():
        try:
            content = json.loads(read_text(path))
            found, where = Optimum(**content["optimum"]), difference(content["problem"], about)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} cannot be used: {error}. Delete it, or choose another 'checkpoint'."
            ) from None
        if where:
            raise InputError(
                f"The checkpoint in {path.parent} belongs to another comparison: {where} is not the same. "
                "Choose another directory; nothing was changed in this one."
            )
        search.unlink(missing_ok=True)  # a kill may have left it
        return found
    path.parent.mkdir(parents=True, exist_ok=True)
    found = compute(search)
    text = json.dumps({"problem": about, "optimum": asdict(found)}, indent=1)
    write(path, lambda file: file.write(text.encode()))
    search.unlink(missing_ok=True)
    return found


def smallest(data: xr.Dataset) -> float:
    """The smallest objective that was seen, the starts and averages included; infinite if none was finite."""
    names = (
        "objective_best",
        "objective_start",
        "objective_average",
        "default_objective_best",
        "default_objective_average",
    )
    values = np.concatenate([data[name].values.ravel() for name in names if name in data])
    return float(np.min(values[np.isfinite(values)], initial=np.inf))
