"""Tasks on other processes and machines, and a sweep whose chunks are such tasks. Dask is not imported here."""

from __future__ import annotations

import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from .._check import shown
from .._threads import cores, one_blas_thread
from .chunks import Chunk, Trajectories
from .parts import Parts

AGAIN_AT_MOST = 5  # times that a task is handed out anew because those who worked on it are gone


class Cluster:
    """A client, and the data that all tasks share."""

    def __init__(self, client: Any, owner: str, *data: Any):
        if not callable(getattr(client, "submit", None)):
            raise TypeError(
                f"The 'client' parameter of {owner} must be a distributed.Client, or an object with a method submit as the "
                f"executors of concurrent.futures have it. Got {shown(client)} instead."
            )
        self.client, self.data, self.held = client, data, tuple[Any, ...]()
        self._something, self._failures = threading.Event(), dict[Any, int]()
        self.running = dict[Any, Any]()  # futures by the tasks they work on
        self._hand_out()

    def _hand_out(self) -> None:
        scatter = getattr(self.client, "scatter", None)
        self.held = (
            tuple(scatter(list(self.data), broadcast=True, hash=False)) if scatter else self.data
        )

    def submit(self, task: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Let somebody compute function(*data, *arguments); `completed` tells when it is there."""
        impure = (
            {"pure": False} if hasattr(self.client, "scatter") else {}
        )  # a key of its own, not one made of all arguments
        future = self.client.submit(function, *self.held, *arguments, **impure)
        self.running[task] = future, function, arguments
        future.add_done_callback(lambda _: self._something.set())

    def completed(self, seconds: float) -> Iterator[tuple[Any, Any]]:
        """Wait for at most so many seconds; yields the tasks that are through, and what they return.

        What was lost with those who worked on it is handed out again: a task depends on nothing but its arguments.
        """
        self._something.wait(seconds)
        self._something.clear()
        for task, (future, function, arguments) in list(self.running.items()):
            if not future.done():
                continue
            del self.running[task]
            try:
                answer = future.result()
            except Exception as error:
                self._failures[task] = self._failures.get(task, 0) + 1
                if not _lost(error) or self._failures[task] > AGAIN_AT_MOST:
                    raise
                self._hand_out()
                self.submit(task, function, *arguments)
                continue
            self._failures.pop(task, None)
            yield task, answer

    def cancel(self) -> None:
        """Forget what is not through."""
        for future, *_ in self.running.values():
            with suppress(Exception):  # nobody waits for it
                future.cancel()
        self.running.clear()


def _lost(error: BaseException) -> bool:
    """Whether a worker is gone, and not the work wrong."""
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(error).__mro__}
    gone = {
        "distributed.KilledWorker",
        "distributed.FutureCancelledError",
        "distributed.FuturesCancelledError",
    }
    return isinstance(error, concurrent.futures.CancelledError) or bool(kinds & gone)


def workers_of(client: Any) -> int:
    """Tasks that can run at the same time."""
    threads = getattr(client, "nthreads", None)
    known = sum(threads().values()) if callable(threads) else getattr(client, "_max_workers", None)
    return known or cores()


def computed(trajectories: Trajectories, chunk: Chunk) -> dict[str, np.ndarray]:
    """Return the results of a chunk; this is what a worker does."""
    with one_blas_thread():
        return trajectories.run(chunk, lambda: False, lambda loop: None)[0]


class ClusterRun(Parts):
    """Chunks on a cluster; the process that calls `sweep` writes the checkpoint."""

    def __init__(self, *plan: Any, client: Any, look: float):
        super().__init__(*plan)
        self.client, self.look = client, look

    def finish(self, bar: Any, interrupt: Any) -> None:
        """Run all chunks, or until Ctrl-C, or until one fails."""
        cluster, waiting = (
            Cluster(self.client, "sweep", self.trajectories),
            deque(range(len(self.plan))),
        )
        try:
            while (waiting or cluster.running) and not interrupt.requested:
                while (
                    waiting and len(cluster.running) < self.jobs
                ):  # more would take more memory than they may
                    part = waiting.popleft()
                    if (answer := self.finished(part)) is not None:
                        self.complete(part, answer)
                    else:
                        cluster.submit(part, computed, self.plan[part])
                for part, answer in cluster.completed(self.look) if cluster.running else ():
                    if self.keeper:
                        self.keeper.finish(part, answer)
                    self.complete(part, answer)
                bar.update(self.iterations({}) - bar.n)
        except KeyboardInterrupt:  # where Ctrl-C is not delayed
            self.interrupted = True
        finally:
            cluster.cancel()
