"""Work for other processes and machines, by a client that somebody hands over: nothing of Dask is imported here.

A client is a `distributed.Client`, or anything with `submit(function, *arguments)` that returns futures with `done`, `result`,
`cancel` and `add_done_callback`: an executor of `concurrent.futures`, too. If it has `scatter`, data go out once.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from .check import shown
from .threads import cores

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
