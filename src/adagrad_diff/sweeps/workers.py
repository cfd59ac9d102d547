"""Where the chunks of a sweep are computed (threads, or a cluster) and stored (a directory)."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from signal import SIGINT
from typing import Any

from .._check import InputError, shown
from .._files import as_path, reason
from .._threads import cores, one_blas_thread
from ..solvers.checkpoint import Checkpoint, load, save
from ..solvers.fingerprint import difference, known_by_name
from ..solvers.status import Status
from .chunks import Arrays, Chunk, Trajectories

SWEEP_FORMAT = "adagrad-diff sweep 5"
#: Errors by which Dask, and executors, report that a worker died.
LOST_WORKER = ("CancelledError", "KilledWorker", "FutureCancelledError", "FuturesCancelledError")
MAX_RETRIES = 5  # times that a task is submitted again because its worker died
PROGRESS_SECONDS = 0.3  # between two updates of the progress bar, and checks for Ctrl-C

UNNAMED = (
    "'checkpoint' needs a name for {}, a function or an object that this package does not know: "
    "without one, a later call cannot check that it continues the same sweep. Give it a name with "
    "adagrad_diff.named('a name', it), or define the function at the top level of a module."
)


class SweepCheckpoint(Checkpoint):
    """A directory with a file `sweep.npz` that identifies the sweep, and one file per finished chunk."""

    def __init__(self, directory: Any, trajectories: Trajectories):
        self.directory, self.trajectories = as_path(directory, "checkpoint"), trajectories
        self.fingerprint, self.chunks = trajectories.fingerprint(), list[Chunk]()
        for where, name in known_by_name(self.fingerprint):
            if name is None:
                raise InputError(UNNAMED.format(where))
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                f"'checkpoint' cannot be written: {self.directory}: {reason(error)}."
            ) from error
        super().__init__(self.directory / "sweep.npz", SWEEP_FORMAT)

    def resume(self, budget: float, jobs: int) -> list[Chunk]:
        """Return the chunks of the first call, which may be this one with this budget and jobs."""
        header = {"sweep": self.fingerprint, "planned": {"budget": budget, "jobs": jobs}}
        if self.content is None:
            for path in self.directory.iterdir():
                if path != self.lock_path:
                    raise InputError(
                        "'checkpoint' must be an empty or new directory, or one that a sweep has "
                        f"written. {self.directory} holds {path.name!r} and no {self.path.name}."
                    )
            self.write(header, {})
        else:
            header, _ = self.content
            if header["sweep"] != self.fingerprint:
                where = difference(header["sweep"], self.fingerprint)
                raise self.refusal(f"it belongs to another sweep, for {where} is not the same")
        self.chunks = self.trajectories.plan(**header["planned"])
        return self.chunks

    def _file(self, chunk: Chunk) -> tuple[Path, dict[str, Any]]:
        """Return the path and the header of the file of a chunk."""
        path = self.directory / f"chunk-{self.chunks.index(chunk):04d}.npz"
        return path, {"sweep": self.fingerprint, "chunk": list(chunk)}

    def write_chunk(self, chunk: Chunk, arrays: Arrays) -> None:
        """Store the results of a finished chunk."""
        path, header = self._file(chunk)
        save(path, {"format": SWEEP_FORMAT, **header}, arrays)

    def read_chunk(self, chunk: Chunk) -> Arrays | None:
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


def run_chunks(
    trajectories: Trajectories,
    plan: list[Chunk],
    jobs: int,
    store: SweepCheckpoint | None,
    client: Any,
    bar: Any,
    interrupts: list[int],
) -> dict[Chunk, Arrays]:
    """Return the results of all chunks, or of some of them after Ctrl-C.

    At most `jobs` chunks run at the same time, in threads or on a client. `interrupts` holds the
    signals of Ctrl-C so far.
    """
    results: dict[Chunk, Arrays] = {}
    iterations = dict.fromkeys(plan, 0)
    stopping = threading.Event()

    def finish(chunk: Chunk, arrays: Arrays) -> None:
        if store is not None and Status.INTERRUPTED not in arrays["status"]:
            store.write_chunk(chunk, arrays)
        results[chunk], iterations[chunk] = arrays, trajectories.n_iter

    def compute_here(chunk: Chunk) -> None:
        def stop() -> bool:
            iterations[chunk] += 1
            return stopping.is_set()

        finish(chunk, trajectories.run(chunk, stop))

    with ExitStack() as stack:
        if client is None:
            stack.enter_context(one_blas_thread())
            pool = ThreadPoolExecutor(jobs, thread_name_prefix="adagrad_diff.sweep")
            stack.enter_context(pool)
            cluster = Cluster(pool, "sweep")
        else:
            cluster = Cluster(client, "sweep", trajectories)
        stack.callback(cluster.cancel)
        stack.callback(stopping.set)
        waiting = deque(plan)
        try:
            while (waiting or cluster.running) and not interrupts:
                while waiting and len(cluster.running) < jobs:
                    chunk = waiting.popleft()
                    stored = None if store is None else store.read_chunk(chunk)
                    if stored is None:
                        cluster.submit(chunk, compute_here if client is None else compute, chunk)
                    else:
                        results[chunk], iterations[chunk] = stored, trajectories.n_iter
                for chunk, arrays in cluster.completed(PROGRESS_SECONDS):
                    if client is not None:
                        finish(chunk, arrays)
                bar.update(sum(chunk.width * n for chunk, n in iterations.items()) - bar.n)
        except KeyboardInterrupt:  # from a loss, or because Ctrl-C has another handler
            interrupts.append(SIGINT)
    return results


def compute(trajectories: Trajectories, chunk: Chunk) -> Arrays:
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
        self._event, self._failures = threading.Event(), Counter[Any]()
        self.running = dict[Any, Any]()  # task: (future, function, arguments)
        self._scatter()

    def _scatter(self) -> None:
        """Send the data to the workers of Dask."""
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
        """Wait up to so many seconds for running tasks; yield those that are done, and their results.

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
                self._failures[task] += 1
                names = {kind.__name__ for kind in type(error).__mro__}
                if names.isdisjoint(LOST_WORKER) or self._failures[task] > MAX_RETRIES:
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


def workers_of(client: Any) -> int:
    """Return the number of tasks that a client can run at the same time."""
    threads = getattr(client, "nthreads", None)
    known = sum(threads().values()) if callable(threads) else getattr(client, "_max_workers", None)
    return known or cores()
