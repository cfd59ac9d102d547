"""The public function `sweep`: many (rule, eta, start) trajectories in one call."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._messages import require
from .._threads import cores
from .._version import __version__
from ..losses import Minibatch
from ..solvers.result import Interrupted, Status
from .chunks import RECORDED, Arrays, Trajectories
from .workers import SweepCheckpoint, run_chunks, workers_of

if TYPE_CHECKING:
    import xarray

UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def sweep(
    loss: Any,
    penalty: Any,
    rules: Any,
    etas: Any,
    x0s: Any,
    n_iter: int,
    *,
    record: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    memory: str | float = "2GB",
    n_jobs: int | None = None,
    keep_x: bool = True,
    averages: bool = False,
    progress: bool | None = None,
    label: str = "sweep",
    client: Any = None,
) -> xarray.Dataset:
    r"""Run every rule with every eta from every start.

    Parameters
    ----------
    loss, penalty
        As for `minimize`. A function as loss must accept columns: x of shape (d, B) -> values (B,),
        gradients (d, B). It is called in `n_jobs` threads at the same time.
    rules : Rule class, callable, or several of them
        Functions that make a rule from a number eta: `AdaGradDiff`, or
        `lambda eta: AdaGradDiff(eta, blocks="all")`. A rule class without a step size, such as
        `DoG`, runs for every eta all the same. Rules that differ in eta only run side by side.
        Others, such as schedules (a callable eta), run one eta at a time. A dict gives names to
        the rules.
    etas : array
        Step sizes.
    x0s : array (d, starts)
        One start per column.
    n_iter : int
        Iterations of each trajectory.
    record : int
        Record every k-th iteration (and always the last).
    checkpoint : path, optional
        A directory for finished chunks. The same call resumes from there with bitwise identical
        results, also after a kill. Unfinished chunks are computed again. One sweep at a time uses
        the directory. The checkpoint identifies data by their content and code by its name: give a
        name with `named` to a lambda, a function inside another one, an operator or an object of a
        foreign class, whether it is the loss, the penalty or the eta of a schedule. After a change
        of the code, use another name or another directory.
    memory : str or number
        What the trajectories that run at the same time may use: "2GB", or a number of bytes.
    n_jobs : int, optional
        Chunks that run side by side if the memory allows it; by default as many as there are cores.
    keep_x : bool
        Whether to return the final iterates.
    averages : bool
        Whether to keep the average iterates (`x_avg` of `minimize`) of all rules, which takes
        memory and some time.
    progress : bool, optional
        Whether to show a progress bar on stderr; by default, if that is a terminal.
    label : str
        The title of the progress bar.
    client : distributed.Client, optional
        A Dask cluster that computes the chunks (or an executor of `concurrent.futures`). Data are
        sent once. `n_jobs` is by default the number of its threads, and `memory` is for all of them
        together. The process that calls writes the checkpoint. The chunks of workers that die are
        computed again.

    Returns
    -------
    xarray.Dataset
        objective :math:`F(x^{n+1})` and mean_step (mean over coordinates of :math:`\eta / w^n`)
        with dims rule, eta, seed, iteration, NaN after a trajectory has ended. objective_best is
        the smallest objective of all iterations and the start. objective_average is the objective
        at the average iterate: of rules that return an average (`DoG`), with `averages` of all
        rules, otherwise NaN. Furthermore status (see `Status`) and nit, the starts and their
        objective, and the final iterates x. The attributes describe the problem and the versions.

    Raises
    ------
    Interrupted
        After Ctrl-C, a subclass of KeyboardInterrupt. In its `result`, trajectories that are not
        finished have status INTERRUPTED, and NaN from where they stopped.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, LAD, AdaGrad, AdaGradDiff, sweep
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((50, 5))
    >>> starts = rng.standard_normal((5, 4))
    >>> rules = [AdaGradDiff, AdaGrad]
    >>> result = sweep(LAD(A, A[:, 0]), L1(0.01), rules, [0.1, 1, 10], starts, 100)
    >>> result.objective.sizes
    Frozen({'rule': 2, 'eta': 3, 'seed': 4, 'iteration': 100})
    >>> final = result.objective.isel(iteration=-1).mean("seed")
    >>> bool((final.sel(rule="AdaGradDiff", eta=10) < final.sel(rule="AdaGrad", eta=10)).all())
    True
    """
    _, progress_bar, _ = (require(name, "sweep") for name in ("xarray", "tqdm", "threadpoolctl"))
    with _delayed_interrupts() as interrupts, ExitStack() as stack:
        trajectories = Trajectories(
            loss, penalty, rules, etas, x0s, n_iter, record, keep_x, averages
        )
        if client is not None and getattr(getattr(loss, "A", None), "client", None) is not None:
            raise ValueError(
                "The data of this loss are on workers already, which compute all trajectories "
                "there: leave out 'client', or give a loss whose data are in memory."
            )
        jobs = cores() if client is None else workers_of(client)
        if n_jobs not in (None, -1):
            jobs = _check.count(n_jobs, "n_jobs", "sweep", least=1)
        budget = _bytes(memory)
        plan, store = trajectories.plan(budget, jobs), None
        if checkpoint is not None:
            store = stack.enter_context(closing(SweepCheckpoint(checkpoint, trajectories)))
            plan = store.resume(budget, jobs)
        widest = max(chunk.width for chunk in plan)
        jobs = max(1, min(jobs, int(budget / (widest * trajectories.column_bytes))))
        bar = progress_bar.tqdm(
            desc=label,
            total=sum(chunk.width for chunk in plan) * trajectories.n_iter,
            unit="it",
            unit_scale=True,
            dynamic_ncols=True,
            disable=None if progress is None else not progress,
        )
        stack.enter_context(bar)
        results = run_chunks(trajectories, plan, jobs, store, client, bar, interrupts)
        chunks = [results.get(chunk) or trajectories.empty(chunk.width) for chunk in plan]
        result = _dataset(trajectories, chunks)
        if interrupts:
            finished = int((result.status != Status.INTERRUPTED).sum())
            resume = "With a directory as 'checkpoint', the same call would resume from here."
            if checkpoint is not None:
                resume = (
                    f"The same call with checkpoint={os.fspath(checkpoint)!r} resumes from here."
                )
            raise Interrupted(
                f"The sweep was interrupted: {finished} of {result.status.size} trajectories are "
                f"finished. {resume}",
                result,
            )
        return result


@contextmanager
def _delayed_interrupts() -> Iterator[list[int]]:
    """Collect the signals of Ctrl-C, because an exception would leave a progress bar locked.

    This is possible in the main thread only, and only if the signal has no other handler.
    """
    interrupts: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    delayed = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if delayed:
        signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield interrupts
    finally:
        if delayed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupts:  # after the last check
        raise KeyboardInterrupt


def _bytes(memory: Any) -> float:
    """Return a number of bytes such as 2e9, "2GB" or "512 MiB"."""
    text = str(memory).strip().upper()
    number = text.rstrip("BIKMGT ")
    try:
        value = float(number) * UNITS[text[len(number) :].strip()]
    except (ValueError, KeyError):
        value = np.nan
    if not 0 < value < np.inf:
        raise _check.InputError(
            "The 'memory' parameter of sweep must be a size such as '2GB' or 2e9. "
            f"Got {memory!r} instead."
        )
    return value


def _dataset(trajectories: Trajectories, chunks: list[Arrays]) -> xarray.Dataset:
    """Return the results of all chunks with labels; they are removed from the chunks."""
    import xarray

    t, dims = trajectories, ("rule", "eta", "seed")
    shape = len(t.rules), t.etas.size, t.starts
    coordinate = ("coordinate", *(f"coordinate_{axis}" for axis in range(1, t.x0s.ndim - 1)))
    variables: dict[str, Any] = {}
    for name in tuple(chunks[0]):
        values = np.concatenate([arrays.pop(name) for arrays in chunks], axis=-1)
        values = values.reshape(*values.shape[:-1], *shape)
        if name in RECORDED:
            variables[name] = ((*dims, "iteration"), np.moveaxis(values, 0, -1))
        else:
            variables[name] = ((*(coordinate if name == "x" else ()), *dims), values)
    variables["objective_start"] = ("seed", t.objective_start)
    variables["start"] = ((*coordinate, "seed"), t.x0s)
    coords: dict[str, Any] = {"rule": list(t.rules), "eta": t.etas, "seed": np.arange(t.starts)}
    coords["iteration"] = t.iterations
    if isinstance(t.loss, Minibatch):
        coords["passes"] = ("iteration", t.loss.schedule(t.n_iter)[t.iterations - 1])
    attributes = {
        "adagrad_diff": __version__,
        "numpy": np.__version__,
        "problem": json.dumps(t.description),
    }
    data = xarray.Dataset(variables, coords, attributes)
    data.status.attrs = {
        "flag_values": [int(status) for status in Status],
        "flag_meanings": " ".join(status.name for status in Status),
    }
    return data
