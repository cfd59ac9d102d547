"""Where the chunks of a sweep are computed (threads, or a cluster) and stored (a directory)."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from signal import SIGINT
from typing import Any

from .._check import InputError, shown
from .._files import as_path, load_arrays, reason, save_arrays
from .._threads import cores, one_blas_thread
from ..solvers.checkpoint import Checkpoint
from ..solvers.fingerprint import difference, known_by_name
from .chunks import Arrays, Chunk, Trajectories

SWEEP_FORMAT = "adagrad-diff sweep 5"
#: Errors by which Dask, and executors, report that a worker died.
LOST_WORKER = ("CancelledError", "KilledWorker", "FutureCancelledError", "FuturesCancelledError")
MAX_RETRIES = 5  # times that a task is submitted again because its worker died
PROGRESS_SECONDS = 0.3  # at most, between two updates of the progress bar and checks for Ctrl-C

UNNAMED = (
    "'checkpoint' needs a name for {}, a function or an object that this package does not know: "
    "without one, a later call cannot check that it continues the same sweep. Give it a name with "
    "adagrad_diff.named('a name', it), or define the function at the top level of a module."
)


class SweepCheckpoint(Checkpoint):
    """A directory with a file that identifies the sweep, and one file per finished chunk."""

    def __init__(self, directory: Any, trajectories: Trajectories):
        self.directory, self.trajectories = as_path(directory, "checkpoint"), trajectories
        self.fingerprint, self.chunks = trajectories.fingerprint, list[Chunk]()
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
            self.check_writable()
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
        save_arrays(path, {"format": SWEEP_FORMAT, **header}, arrays)

    def read_chunks(self) -> dict[Chunk, Arrays]:
        """Return the results of all chunks that are stored."""
        results = {}
        for chunk in self.chunks:
            path, header = self._file(chunk)
            try:
                found, results[chunk] = load_arrays(path, SWEEP_FORMAT)
                if found != header or not self.trajectories.fits(chunk, results[chunk]):
                    raise ValueError("it does not hold the results of this chunk")
            except FileNotFoundError:
                continue
            except Exception as error:  # a damaged file can raise anything
                raise InputError(
                    f"{path} cannot be used: {error}. Delete it and call again: only this chunk "
                    "is computed again."
                ) from error
        return results


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
    results = store.read_chunks() if store else {}
    iterations = dict.fromkeys(plan, 0) | dict.fromkeys(results, trajectories.n_iter)
    tasks = {chunk: (chunk,) for chunk in plan if chunk not in results}
    stopping = threading.Event()

    def compute_here(chunk: Chunk) -> Arrays:
        def stop() -> bool:
            iterations[chunk] += 1
            return stopping.is_set()

        results[chunk] = trajectories.run(chunk, stop)
        return results[chunk]

    with ExitStack() as stack:
        if client is None:
            stack.enter_context(one_blas_thread())
            pool = ThreadPoolExecutor(jobs, thread_name_prefix="adagrad_diff.sweep")
            done = run_tasks(stack.enter_context(pool), "sweep", (), compute_here, tasks, jobs)
        else:
            done = run_tasks(client, "sweep", (trajectories,), compute, tasks, jobs)
        stack.enter_context(closing(done))
        stack.callback(stopping.set)
        try:
            for finished in done:
                if finished is not None:
                    chunk, arrays = finished
                    if store:
                        store.write_chunk(chunk, arrays)
                    results[chunk], iterations[chunk] = arrays, trajectories.n_iter
                bar.update(sum(chunk.width * n for chunk, n in iterations.items()) - bar.n)
                if interrupts:
                    break
        except KeyboardInterrupt:  # from a loss, or because Ctrl-C has another handler
            interrupts.append(SIGINT)
    return results


def compute(trajectories: Trajectories, chunk: Chunk) -> Arrays:
    """Return the results of a chunk; the task of a worker."""
    with one_blas_thread():
        return trajectories.run(chunk)


def run_tasks(
    client: Any,
    owner: str,
    data: tuple[Any, ...],
    function: Callable[..., Any],
    tasks: dict[Any, tuple[Any, ...]],
    limit: int,
) -> Generator[tuple[Any, Any] | None, None, None]:
    """Yield the key and function(*data, *arguments) of each finished task, and None in between.

    The client is one of Dask, which is not imported here, or an executor of concurrent.futures. At
    most `limit` tasks are submitted at the same time, and again if their worker dies.
    """
    if not callable(getattr(client, "submit", None)):
        raise TypeError(
            f"The 'client' parameter of {owner} must be a distributed.Client, or an object with a "
            "method submit as the executors of concurrent.futures have it. Got "
            f"{shown(client)} instead."
        )
    is_dask = hasattr(client, "scatter")
    options = {"pure": False} if is_dask else {}  # no key from a hash of all arguments
    waiting, running, failures = deque(tasks), dict[Any, Any](), Counter[Any]()
    event = threading.Event()

    def send() -> Any:
        return client.scatter(list(data), broadcast=True, hash=False) if is_dask else data

    shared = send()
    try:
        yield None
        while waiting or running:
            while waiting and len(running) < limit:
                key = waiting.popleft()
                future = running[key] = client.submit(function, *shared, *tasks[key], **options)
                future.add_done_callback(lambda _: event.set())
            event.wait(PROGRESS_SECONDS)
            event.clear()
            for key in [key for key, future in running.items() if future.done()]:
                try:
                    result = running.pop(key).result()
                except Exception as error:
                    failures[key] += 1
                    names = {kind.__name__ for kind in type(error).__mro__}
                    if names.isdisjoint(LOST_WORKER) or failures[key] > MAX_RETRIES:
                        raise
                    shared = send()  # the data may be lost as well
                    waiting.append(key)
                else:
                    yield key, result
            yield None
    finally:
        for future in running.values():
            with suppress(Exception):  # the result is not needed
                future.cancel()


def workers_of(client: Any) -> int:
    """Return the number of tasks that a client can run at the same time."""
    threads = getattr(client, "nthreads", None)
    known = sum(threads().values()) if callable(threads) else getattr(client, "_max_workers", None)
    return known or cores()
