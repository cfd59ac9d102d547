"""Where the chunks of a sweep are computed (threads, or a cluster) and stored (a directory)."""

from __future__ import annotations

import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from signal import SIGINT
from typing import Any

from .._check import InputError, shown
from .._files import as_path, reason
from .._threads import cores, one_blas_thread
from ..solvers.checkpoint import Checkpoint, load, save
from ..solvers.fingerprint import difference, known_by_name
from ..solvers.loop import Loop
from ..solvers.status import Status
from .chunks import Arrays, Chunk, Trajectories

SWEEP_FORMAT = "adagrad-diff sweep 5"
MAX_RETRIES = 5  # times that a task is submitted again because its worker died
PROGRESS_SECONDS = 0.3  # between two updates of the progress bar, and checks for Ctrl-C


class SweepCheckpoint:
    """A directory with one file that identifies the sweep, and one for each finished chunk.

    Chunks are cut as in the first call, so that the results are bitwise identical.
    """

    def __init__(self, directory: Any, trajectories: Trajectories, budget: float, jobs: int):
        self.directory, self.trajectories = as_path(directory, "checkpoint"), trajectories
        self.fingerprint = trajectories.fingerprint()
        for where, name in known_by_name(self.fingerprint):
            if name is None:
                raise InputError(
                    f"'checkpoint' needs a name for {where}, a function or an object that this "
                    "package does not know: without one, a later call cannot check that it "
                    "continues the same sweep. Give it a name with "
                    "adagrad_diff.named('a name', it), or define the function at the top level of "
                    "a module."
                )
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                f"'checkpoint' cannot be written: {self.directory}: {reason(error)}."
            ) from error
        self._index = Checkpoint(self.directory / "sweep.npz", SWEEP_FORMAT)
        try:
            self.plan = trajectories.plan(**self._planned(budget, jobs))
        except BaseException:
            self.close()
            raise

    def _planned(self, budget: float, jobs: int) -> dict[str, Any]:
        """Return the memory budget and the jobs of the first call, which may be this one."""
        index, planned = self._index, {"budget": budget, "jobs": jobs}
        if index.content is None:
            for path in self.directory.iterdir():
                if path.name != index.lock_path.name:
                    raise InputError(
                        "'checkpoint' must be an empty or new directory, or one that a sweep has "
                        f"written. {self.directory} holds {path.name!r} and no {index.path.name}."
                    )
            index.write({"sweep": self.fingerprint, "planned": planned}, {})
            return planned
        header, _ = index.content
        if header["sweep"] != self.fingerprint:
            where = difference(header["sweep"], self.fingerprint)
            raise index.refusal(f"it belongs to another sweep, for {where} is not the same")
        return dict(header["planned"])

    def close(self) -> None:
        """Let other sweeps use the directory."""
        self._index.close()

    def _file(self, chunk: Chunk) -> tuple[Any, dict[str, Any]]:
        """Return the path and the header of the file of a chunk."""
        path = self.directory / f"chunk-{self.plan.index(chunk):04d}.npz"
        return path, {"sweep": self.fingerprint, "chunk": list(chunk)}

    def write(self, chunk: Chunk, arrays: Arrays) -> None:
        """Store the results of a finished chunk."""
        path, header = self._file(chunk)
        save(path, {"format": SWEEP_FORMAT, **header}, arrays)

    def read(self, chunk: Chunk) -> Arrays | None:
        """Return the results of a chunk if they are stored."""
        path, header = self._file(chunk)
        try:
            found, arrays = load(path, SWEEP_FORMAT)
            if found != header or not self.trajectories.fits(chunk, arrays):
                raise ValueError("it does not hold the results of this chunk")
            return arrays
        except FileNotFoundError:
            return None
        except Exception as error:  # a damaged file can raise anything
            raise InputError(
                f"{path} cannot be used: {error}. Delete it and call again: only this chunk is "
                "computed again."
            ) from error


class ChunkRunner:
    """Runs the chunks of a sweep, at most `jobs` at the same time; their arrays are in `results`."""

    def __init__(
        self,
        trajectories: Trajectories,
        plan: list[Chunk],
        jobs: int,
        checkpoint: SweepCheckpoint | None,
    ):
        self.trajectories, self.plan, self.jobs = trajectories, plan, jobs
        self.checkpoint = checkpoint
        self.results: dict[Chunk, Arrays] = {}
        self._loops: dict[Chunk, Loop] = {}  # of the chunks that are running in threads
        self._stopping = False

    def run(self, client: Any, bar: Any, interrupts: list[int]) -> None:
        """Run all chunks, or until Ctrl-C or an error. Every Ctrl-C is appended to `interrupts`."""
        if client is not None:
            cluster = Cluster(client, "sweep", self.trajectories)
            self._run(cluster, compute_chunk, bar, interrupts)
            return
        with (
            one_blas_thread(),
            ThreadPoolExecutor(self.jobs, thread_name_prefix="adagrad_diff.sweep") as pool,
        ):
            self._run(Cluster(pool, "sweep"), self._compute, bar, interrupts)

    def _run(
        self, cluster: Cluster, function: Callable[..., Any], bar: Any, interrupts: list[int]
    ) -> None:
        waiting = deque(self.plan)
        try:
            while (waiting or cluster.running) and not interrupts:
                while waiting and len(cluster.running) < self.jobs:
                    chunk = waiting.popleft()
                    stored = self.checkpoint.read(chunk) if self.checkpoint else None
                    if stored is None:
                        cluster.submit(chunk, function, chunk)
                    else:
                        self.results[chunk] = stored
                for chunk, arrays in cluster.completed(PROGRESS_SECONDS):
                    if arrays is not None:
                        self._finish(chunk, arrays)
                bar.update(self._iterations() - bar.n)
        except KeyboardInterrupt:  # from a loss, or because Ctrl-C has another handler
            interrupts.append(SIGINT)
        finally:
            self._stopping = True
            cluster.cancel()

    def _compute(self, chunk: Chunk) -> None:
        """Compute a chunk in this thread; stop after an iteration if the sweep is stopping."""
        watch = partial(self._loops.__setitem__, chunk)
        self._finish(chunk, self.trajectories.run(chunk, lambda: self._stopping, watch))

    def _finish(self, chunk: Chunk, arrays: Arrays) -> None:
        if self.checkpoint and Status.INTERRUPTED not in arrays["status"]:
            self.checkpoint.write(chunk, arrays)
        self.results[chunk] = arrays
        self._loops.pop(chunk, None)

    def _iterations(self) -> int:
        """Return the number of iterations of all trajectories so far."""
        done = {chunk: loop.n for chunk, loop in tuple(self._loops.items())}
        done |= dict.fromkeys(tuple(self.results), self.trajectories.n_iter)
        return sum(chunk.width * n for chunk, n in done.items())


def compute_chunk(trajectories: Trajectories, chunk: Chunk) -> Arrays:
    """Return the results of a chunk; the task of a worker."""
    with one_blas_thread():
        return trajectories.run(chunk)


class Cluster:
    """Tasks on a Dask client or an executor, with data that all tasks share. Dask is not imported."""

    def __init__(self, client: Any, owner: str, *data: Any):
        if not callable(getattr(client, "submit", None)):
            raise TypeError(
                f"The 'client' parameter of {owner} must be a distributed.Client, or an object "
                "with a method submit as the executors of concurrent.futures have it. Got "
                f"{shown(client)} instead."
            )
        self.client, self.data = client, data
        self._is_dask = hasattr(client, "scatter")
        self._event, self._failures = threading.Event(), dict[Any, int]()
        self.running = dict[Any, Any]()  # task: (future, function, arguments)
        self._scatter()

    def _scatter(self) -> None:
        """Send the data to the workers, or keep them for an executor."""
        self._shared: Any = self.data
        if self._is_dask:
            self._shared = self.client.scatter(list(self.data), broadcast=True, hash=False)

    def submit(self, task: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Let a worker compute function(*data, *arguments)."""
        options = {"pure": False} if self._is_dask else {}  # no key from a hash of all arguments
        future = self.client.submit(function, *self._shared, *arguments, **options)
        self.running[task] = future, function, arguments
        future.add_done_callback(lambda _: self._event.set())

    def completed(self, seconds: float) -> Iterator[tuple[Any, Any]]:
        """Wait up to so many seconds for a running task; yield those that are done, and their results.

        A task whose worker died is submitted again.
        """
        if self.running:
            self._event.wait(seconds)
        self._event.clear()
        for task, (future, function, arguments) in list(self.running.items()):
            if not future.done():
                continue
            del self.running[task]
            try:
                result = future.result()
            except Exception as error:
                self._failures[task] = self._failures.get(task, 0) + 1
                if not _is_lost(error) or self._failures[task] > MAX_RETRIES:
                    raise
                self._scatter()
                self.submit(task, function, *arguments)
            else:
                yield task, result

    def cancel(self) -> None:
        """Cancel all tasks that are not done."""
        for future, *_ in self.running.values():
            with suppress(Exception):  # the result is not needed
                future.cancel()
        self.running.clear()


def _is_lost(error: BaseException) -> bool:
    """Return whether an error says that a worker died, not that its task failed."""
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(error).__mro__}
    lost = {
        "distributed.KilledWorker",
        "distributed.FutureCancelledError",
        "distributed.FuturesCancelledError",
    }
    return isinstance(error, concurrent.futures.CancelledError) or bool(kinds & lost)


def workers_of(client: Any) -> int:
    """Return the number of tasks that a client can run at the same time."""
    threads = getattr(client, "nthreads", None)
    known = sum(threads().values()) if callable(threads) else getattr(client, "_max_workers", None)
    return known or cores()
