"""How much the learning rate matters to a training function, in processes or on a cluster."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from .. import _check
from .._files import as_path
from .._messages import counted, require
from ..solvers.result import Status
from ..sweeps.workers import run_tasks, workers_of
from .result import FStar, Sensitivity

DEFAULT_RATES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
MAX_EXTENSIONS = 4  # times that the grid is extended by a step size at an end
RATE_DIGITS = 6  # significant digits of the step sizes that are added
RUNS_FILE = "runs.jsonl"

Key = tuple[str, float, int]  # method, learning rate, seed
Runs = dict[Key, list[float]]


def is_training(function: Any) -> bool:
    """Return whether a function has three required parameters, as train(method, lr, seed)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    needed = [one for one in parameters if one.default is one.empty and one.kind not in several]
    return len(needed) == 3


def compare_training(
    train: Callable[[str, float, int], Any],
    methods: Any,
    rates: Any,
    seeds: Any,
    checkpoint: Any,
    n_jobs: int | None,
    client: Any,
) -> Sensitivity:
    """Return the comparison of a training function; see `sensitivity`."""
    xarray = require("xarray", "sweep")
    methods = [methods] if isinstance(methods, str) else list(methods or ())
    if not methods or not all(isinstance(name, str) for name in methods):
        raise TypeError("'rules' must be the names of methods that the training function knows.")
    seeds = _check.count(seeds, "starts", "sensitivity", least=1)
    given = DEFAULT_RATES if rates is None else np.ravel(rates)
    grid = sorted({_check.positive(rate, "etas", "sensitivity") for rate in given})
    name, full_name = _names(train)
    path = None if checkpoint is None else as_path(checkpoint, "checkpoint") / RUNS_FILE
    runs = _load(path, full_name)
    for extension in range(MAX_EXTENSIONS + 1):
        keys = list(product(methods, grid, range(seeds)))
        missing = [key for key in keys if key not in runs]
        for key, losses in _run_all(train, missing, n_jobs, client):
            runs[key] = losses
            _append(path, [key, losses])
        longest = max(len(runs[key]) for key in keys)
        padded = [runs[key] + runs[key][-1:] * (longest - len(runs[key])) for key in keys]
        curves = np.array(padded).reshape(len(methods), len(grid), seeds, longest)
        initial, failed = _initial_loss(curves), ~np.isfinite(curves[..., -1])
        best = np.where(failed, initial, curves[..., -1]).mean(axis=-1).argmin(axis=1)
        extended = _extended(grid, best)
        if extended == grid or extension == MAX_EXTENSIONS:
            break
        grid = extended
    dims = ("rule", "eta", "seed", "iteration")
    variables = {
        "objective": (dims, curves),
        "mean_step": (dims, np.full(curves.shape, np.nan)),
        "objective_best": (dims[:3], np.fmin.reduce(curves, axis=-1)),
        "objective_start": ("seed", np.full(seeds, initial)),
        "status": (dims[:3], np.where(failed, Status.DIVERGED, Status.MAX_ITER)),
        "free": ("rule", np.zeros(len(methods), bool)),
        "published": ("rule", np.full(len(methods), np.nan)),
    }
    coords = {"rule": methods, "eta": grid, "seed": range(seeds), "iteration": range(longest)}
    data = xarray.Dataset(variables, coords)
    diverged = f"{failed.sum()} of {counted(failed.size, 'run')}"
    text = f"Divergence ({diverged}) counts as the initial loss, {initial:.4g}."
    call = f"sensitivity({name}, rules={methods}, etas={grid}, starts={seeds})"
    return Sensitivity(
        data,
        data.isel(eta=0),
        FStar(0.0, "not needed", text),
        unit="",
        gap_name="loss",
        title=f"How much does the learning rate matter? {name}",
        about=[["Training function", full_name]],
        command=["from adagrad_diff import sensitivity", call],
        within="2x",
        failed_gap=initial,
    )


def _names(train: Any) -> tuple[str, str]:
    """Return the name of a training function, and one with its module and fixed arguments."""
    fixed = ""
    while isinstance(train, partial):
        fixed = f"{fixed}, {train.args}, {train.keywords}"
        train = train.func
    name = getattr(train, "__qualname__", type(train).__qualname__)
    return name, f"{train.__module__}.{name}{fixed}"


def _initial_loss(curves: np.ndarray) -> float:
    """Return the loss before training, by (method, rate, seed, step); see `sensitivity`."""
    if curves.shape[-1] > 1:
        first = curves[..., 0]
        return float(np.median(first[np.isfinite(first)]))
    smallest_rate = curves[:, 0]
    return float(smallest_rate[np.isfinite(smallest_rate)].max(initial=0.0))


def _extended(grid: list[float], best: np.ndarray) -> list[float]:
    """Return the grid, longer at the ends where the best rate of a method lies."""
    if len(grid) == 1:
        return grid
    ends = [grid[0] ** 2 / grid[1]] if 0 in best else []
    ends += [grid[-1] ** 2 / grid[-2]] if len(grid) - 1 in best else []
    return sorted({*grid, *(float(f"{rate:.{RATE_DIGITS}g}") for rate in ends)})


def _run_all(
    train: Any, keys: list[Key], n_jobs: int | None, client: Any
) -> Iterator[tuple[Key, list[float]]]:
    """Yield the key and the losses of each run when it is complete."""
    if not keys or (client is None and n_jobs in (None, 1)):
        yield from ((key, _run(train, *key)) for key in keys)
        return
    with ExitStack() as stack:
        if client is None:  # a fork would break the threads of PyTorch and JAX
            pool = ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn"))
            client = stack.enter_context(pool)
        tasks = {key: key for key in keys}
        limit = n_jobs or workers_of(client)
        yield from filter(None, run_tasks(client, "sensitivity", (train,), _run, tasks, limit))


def _run(train: Any, method: str, rate: float, seed: int) -> list[float]:
    """Return the loss curve of one run, or its final loss."""
    try:
        losses = np.ravel(train(method, rate, seed)).astype(float)
        if not losses.size:
            raise _check.InputError("The training function returned no loss.")
    except Exception as error:
        error.add_note(f"This was method {method!r} with learning rate {rate:g} and seed {seed}.")
        raise
    return [float(loss) for loss in losses]


def _load(path: Path | None, name: str) -> Runs:
    """Return the complete runs of a file. The last line may be cut off by a kill."""
    if path is None:
        return {}
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _append(path, name)
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):
            entries.append(json.loads(line))
    if entries[:1] != [name]:
        raise _check.InputError(
            f"The checkpoint {path} belongs to another training function, {entries[:1]}. Choose "
            "another directory; nothing was changed in this one."
        )
    return {(method, rate, seed): losses for (method, rate, seed), losses in entries[1:]}


def _append(path: Path | None, entry: Any) -> None:
    """Append an entry to a file as a line, line break first: the last line may be cut off."""
    if path is not None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(entry)}")
            file.flush()
            os.fsync(file.fileno())
