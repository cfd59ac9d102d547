"""Where tasks run: in threads of this process, or on the workers of a cluster. Both take one graph, and give its answers.

What a task needs is in its graph, or is the answer of another task. So whatever is lost with a worker is computed again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import dask
import dask.threaded
from dask.base import get_scheduler
from dask.highlevelgraph import HighLevelGraph

from .. import _threads


class Packet:
    """What is sent as it is: Dask would look into lists and tuples for names of tasks."""

    def __init__(self, content: Any):
        self.content = content


def identity(value: Any) -> Any:
    """A task that keeps what it is given, where it runs."""
    return value.content if isinstance(value, Packet) else value


class Threads:
    """Threads of this process, or what `dask.config` says instead. There are two at least: one reads while the other works."""

    overhead = 1e-3  # seconds of a fold, about
    copies = False  # whether what is handed over is copied

    def __init__(self) -> None:
        self._run = (
            get_scheduler() or dask.threaded.get
        )  # of now: a client that is made later has no part in it

    def get(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        """The answers of some tasks."""
        options = (
            {}
            if dask.config.get("num_workers", None)
            else {"num_workers": max(2, _threads.cores())}
        )
        return list(self._run(graph, list(keys), **options))

    def keep(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        """The same, to be used in other graphs."""
        return self.get(graph, keys)

    def compute(self, collection: Any) -> Any:
        """All of a collection."""
        return collection.compute(scheduler=self._run)


class Workers:
    """The workers of a `distributed.Client`."""

    overhead = 1e-2
    copies = True

    def __init__(self, client: Any):
        self.client = client

    def get(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        return self._ask(graph, keys, sync=True)

    def keep(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        return self._ask(graph, keys, sync=False)

    def _ask(self, graph: dict[Any, Any], keys: Sequence[Any], sync: bool) -> list[Any]:
        # A plain dict would get a name made of all that is in it, in each round, and what is an open file has none.
        named = HighLevelGraph.from_collections(f"adagrad_diff-{uuid4().hex}", graph)
        with dask.config.set(
            {"distributed.admin.large-graph-warning-threshold": "1TB"}
        ):  # data are in it on purpose
            return list(self.client.get(named, list(keys), sync=sync))

    def compute(self, collection: Any) -> Any:
        return self.client.compute(collection).result()


def way(client: Any = None) -> Threads | Workers:
    """The client that is given, or the current one, or threads if there is none."""
    named = dask.config.get("scheduler", None)  # a client that is made names itself there
    if (
        client is None
        and named in (None, "dask.distributed", "distributed")
        and "distributed" in sys.modules
    ):
        from distributed import get_client

        try:
            client = get_client()
        except ValueError:  # there is none
            return Threads()
    if client is None:
        return Threads()
    if not hasattr(client, "get") or not hasattr(client, "scheduler_info"):
        raise TypeError(
            f"'client' must be a distributed.Client. Got {type(client).__name__} instead."
        )
    return Workers(client)
