"""Many (rule, eta, start) trajectories at once: columns of one matrix, through the iteration of `minimize`.

The columns are cut into chunks that stay in the cache and in the memory budget. Chunks run side by side in threads, each
with a single-threaded BLAS, so that what a trajectory computes depends on its chunk only: a sweep that was killed and
goes on gives the same bits.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._messages import require
from .._threads import cores, one_blas_thread
from ..solvers.fingerprint import known_by_name
from ..solvers.loop import Loop
from ..solvers.result import Interrupted
from .checkpoint import Checkpoint
from .chunks import Trajectories
from .cluster import ClusterRun, workers_of
from .parts import Parts

if TYPE_CHECKING:
    import xarray

LOOK_EVERY = 0.3  # seconds between two looks at the progress


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
        As for `minimize`. A function as loss must accept columns: x of shape (d, B) -> values (B,), gradients (d, B). It is
        called in `n_jobs` threads at once.
    rules : Rule class, callable, or several of them
        Each makes a rule of eta, a number: `AdaGradDiff`, or `lambda eta: AdaGradDiff(eta, blocks="all")`. A class of rules
        without a step size, such as `DoG`, is run for every eta all the same. Rules that differ
        in eta only run side by side, others, such as schedules (a callable eta), one eta at a time. A dict gives the rules
        names of your choice.
    etas : array
        Step sizes.
    x0s : array (d, starts)
        One start per column.
    n_iter : int
        Iterations of each trajectory.
    record : int
        Record every k-th iteration (and always the last).
    checkpoint : path, optional
        A directory for what is finished. The same call continues from there and gives bit-identical results, also after a
        kill; what was computed of unfinished chunks is lost. One sweep at a time works in it. Data are known again by
        what is in them, code by its name: a lambda, a function inside another one, an operator or an object of a foreign
        class, be it the loss, the penalty or the eta of a schedule, is given a name with `named`. Whoever changes what it
        computes takes another name, or another directory.
    memory : str or number
        What the trajectories that run at once may use, such as "2GB" or a number of bytes.
    n_jobs : int, optional
        Chunks that run side by side, as far as the memory allows; every core by default.
    keep_x : bool
        Whether to return the final iterates.
    averages : bool
        Whether to keep the average iterates (`x_avg` of `minimize`) of all rules, which takes memory and some time.
    progress : bool, optional
        Whether to show a progress bar on stderr; by default, if that is a terminal.
    label : str
        What the progress bar is called.
    client : distributed.Client, optional
        A Dask cluster that computes the chunks (or an executor of `concurrent.futures`). Data go out once, `n_jobs` is by
        default the number of its threads, `memory` is what all of them may use together. The checkpoint is written here, by
        the process that calls; what a worker that dies was computing is computed again.

    Returns
    -------
    xarray.Dataset
        objective :math:`F(x^{n+1})` and mean_step (mean over coordinates of :math:`\eta / w^n`) of dims rule, eta, seed,
        iteration, NaN after a trajectory has ended; objective_best, the smallest objective of all iterations and the start;
        objective_average, that of the average which is the answer of some rules (`DoG`), and with `averages` of all, else NaN;
        status (see `Status`) and nit; the starts and their objective; the final iterates x. The attributes say what was
        computed, with which versions.

    Raises
    ------
    Interrupted
        After Ctrl-C, a subclass of KeyboardInterrupt. Its `result` is what there is: trajectories that are not finished have
        the status INTERRUPTED, and NaN from where they stopped.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, LAD, AdaGrad, AdaGradDiff, sweep
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((50, 5))
    >>> result = sweep(LAD(A, A[:, 0]), L1(0.01), [AdaGradDiff, AdaGrad], [0.1, 1, 10], rng.standard_normal((5, 4)), 100)
    >>> result.objective.sizes
    Frozen({'rule': 2, 'eta': 3, 'seed': 4, 'iteration': 100})
    >>> final = result.objective.isel(iteration=-1).mean("seed")
    >>> bool((final.sel(rule="AdaGradDiff", eta=10) < final.sel(rule="AdaGrad", eta=10)).all())
    True
    """
    _, progress_bar, _ = (
        require(name, "sweep") for name in ("xarray", "tqdm", "threadpoolctl")
    )  # before any work is done
    try:
        with _delayed_interrupt() as interrupt, ExitStack() as stack:  # a progress bar has locks
            trajectories = Trajectories(
                loss, penalty, rules, etas, x0s, n_iter, record, keep_x, averages
            )
            _refuse_two_clusters(loss, client)
            most = cores() if client is None else workers_of(client)
            jobs = (
                most if n_jobs in (None, -1) else _check.count(n_jobs, "n_jobs", "sweep", least=1)
            )
            budget = _bytes(memory)
            plan = trajectories.plan(budget, jobs)
            keeper = None
            if checkpoint is not None:
                _require_names(trajectories.description)
                about = {**trajectories.description, "starts": trajectories.at_starts()}
                keeper = stack.enter_context(
                    Checkpoint(checkpoint, about, plan, trajectories.check_plan)
                )
                plan = keeper.plan
            widest = max(chunk.high - chunk.low for chunk in plan)
            jobs = max(1, min(jobs, int(budget / (widest * trajectories.column))))
            total = sum(chunk.high - chunk.low for chunk in plan) * trajectories.n_iter
            shown = {
                "desc": label,
                "total": total,
                "unit": "it",
                "unit_scale": True,
                "dynamic_ncols": True,
            }
            bar = stack.enter_context(
                progress_bar.tqdm(disable=None if progress is None else not progress, **shown)
            )
            options = (trajectories, plan, keeper, jobs)
            run = (
                _Run(*options)
                if client is None
                else ClusterRun(*options, client=client, look=LOOK_EVERY)
            )
            run.finish(bar, interrupt)
            result = trajectories.dataset(plan, list(run.parts))
            if run.interrupted or interrupt.requested:
                raise Interrupted(
                    f"The sweep was interrupted: {run.outcome} {_going_on(checkpoint)}", result
                ) from run.error
            return result
    except KeyboardInterrupt as error:
        if isinstance(error, Interrupted):
            raise
        raise Interrupted(
            f"The sweep was interrupted before its first iteration. {_going_on(checkpoint)}"
        ) from error


class _Interrupt:
    """Whether Ctrl-C has been pressed."""

    requested = False


@contextmanager
def _delayed_interrupt() -> Iterator[_Interrupt]:
    """Note Ctrl-C instead of raising at once: an exception would leave a progress bar's lock held.

    This is possible in the main thread only, and only if the signal has no other handler. A second
    Ctrl-C raises KeyboardInterrupt.
    """
    interrupt = _Interrupt()
    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def handler(number: int, frame: Any) -> None:
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True

    if ours:
        signal.signal(signal.SIGINT, handler)
    try:
        yield interrupt
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupt.requested:  # after it was last looked at
        raise KeyboardInterrupt


def _refuse_two_clusters(loss: Any, client: Any) -> None:
    """Raise if workers would have to ask a client for the data: that one is here."""
    if client is not None and getattr(getattr(loss, "A", None), "client", None) is not None:
        raise ValueError(
            "The data of this loss are on workers already, which do the work of all trajectories there: leave out 'client', or "
            "give a loss whose data are in memory."
        )


def _require_names(description: dict[str, Any]) -> None:
    """Raise if something in a sweep cannot be known again: a function without a name, or a foreign object."""
    if where := next((path for path, name in known_by_name(description) if name is None), None):
        raise _check.InputError(
            f"'checkpoint' needs a name for {where}, a function or an object that this package does not know: without one, "
            "nobody could tell whether a later call continues the same sweep. Give it one of your own with "
            "adagrad_diff.named('a name', it), or define the function at the top level of a module."
        )


def _going_on(checkpoint: str | os.PathLike[str] | None) -> str:
    if checkpoint is None:
        return "The same call begins anew; with a directory as 'checkpoint' it would go on."
    return f"The same call with checkpoint={os.fspath(checkpoint)!r} resumes from here."


class _Run(Parts):
    """Chunks in threads, `jobs` at a time: the work is done outside the interpreter's lock."""

    def __init__(self, *plan: Any):
        super().__init__(*plan)
        self.loops: dict[int, Loop] = {}  # of the chunks that run
        self.stopping = False

    def finish(self, bar: Any, interrupt: Any) -> None:
        """Run all chunks, or until Ctrl-C, or until one fails."""
        pool, futures = (
            ThreadPoolExecutor(self.jobs, thread_name_prefix="adagrad_diff.sweep"),
            list[Future[None]](),
        )
        with one_blas_thread():
            try:
                parts = range(0 if interrupt.requested else len(self.plan))
                futures += [pool.submit(self._part, part) for part in parts]
                waiting: Any = True
                while waiting and not interrupt.requested and not self.stopping:
                    waiting = wait(futures, LOOK_EVERY, FIRST_EXCEPTION).not_done
                    bar.update(self._done() - bar.n)
            except KeyboardInterrupt:  # where Ctrl-C is not delayed
                self.interrupted = True
            finally:
                self.stopping = True
                pool.shutdown(cancel_futures=True)  # chunks that run end after their iteration
        errors = [
            future.exception() for future in futures if future.done() and not future.cancelled()
        ]
        self.error = next(
            (error for error in errors if error and not isinstance(error, KeyboardInterrupt)), None
        )
        self.interrupted |= (
            any(isinstance(error, KeyboardInterrupt) for error in errors) or interrupt.requested
        )
        if self.error and not self.interrupted:
            raise self.error

    def _done(self) -> int:
        """Return the iterations of all trajectories so far."""
        return self.iterations({part: loop.n for part, loop in tuple(self.loops.items())})

    def _part(self, part: int) -> None:
        """Compute one chunk; an error stops the others."""
        try:
            if not self.stopping:
                self._work(part)
        except BaseException:
            self.stopping = True
            raise

    def _work(self, part: int) -> None:
        answer, complete = self.finished(part), True
        if answer is None:

            def watched(loop: Loop) -> None:
                self.loops[part] = loop

            answer, complete = self.trajectories.run(
                self.plan[part], lambda: self.stopping, watched
            )
            if complete and (keeper := self.keeper):
                keeper.finish(part, answer)
        self.parts[part] = answer
        if complete:
            self.complete(part, answer)
        self.loops.pop(part, None)


def _bytes(memory: Any) -> float:
    """A number of bytes: 2e9, "2GB", "512 MiB"."""
    units = {
        "": 1,
        "B": 1,
        "KB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
        "TB": 1e12,
        "KIB": 2**10,
        "MIB": 2**20,
        "GIB": 2**30,
        "TIB": 2**40,
    }
    text = str(memory).strip().upper()
    number = text.rstrip("BIKMGT ")
    try:
        value = float(number) * units[text[len(number) :].strip()]
    except (ValueError, KeyError):
        value = 0.0
    if not 0 < value < np.inf:
        raise _check.InputError(
            f"The 'memory' parameter of sweep must be a size such as '2GB' or 2e9. Got {memory!r} instead."
        )
    return value
