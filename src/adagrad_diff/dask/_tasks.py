"""Tasks: what they do with a block, and where they run.

Threads and workers accept the same graph and give the same answers. What a task needs is in its
graph, or is the answer of another task, so whatever is lost with a worker is computed again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any
from uuid import uuid4

import cloudpickle
import dask
import dask.multiprocessing
import dask.threaded
import numpy as np
from dask.base import get_scheduler
from dask.highlevelgraph import HighLevelGraph
from dask.sizeof import sizeof

from .. import _threads
from .._messages import warn
from ..linalg import Block, Samples
from ..linalg.block import aligned, writeable


class Packet:
    """Content that is sent as it is. Dask would search lists and tuples for names of tasks."""

    def __init__(self, content: Any):
        self.content = content


def identity(value: Any) -> Any:
    """Return a value, or the content of a packet."""
    return value.content if isinstance(value, Packet) else value


def beside(packet: Packet, block: Any) -> Any:
    """Return the content of a packet, where the block is."""
    return identity(packet)


def apply(block: Block, first: int, call: Any, own: Any) -> Any:
    """Return function(block, *own, *args): `own` belongs to its samples, `args` to all blocks."""
    function, args = identity(call)
    block.first, mine = first, identity(own)
    mine = [mine] if isinstance(mine, BlockSamples) else mine or []
    return function(block, *(usable(value) for value in (*mine, *args)))


def merge_answers(merge: Callable[[Any, Any], Any], answers: list[Any]) -> Any:
    """Return merged answers. Those of other tasks are not modified: they may be used again."""
    return reduce(merge, answers[1:], deepcopy(answers[0]) if len(answers) > 1 else answers[0])


def usable(value: Any) -> Any:
    """Return an array with the alignment and flags of ordinary ones.

    Arrays from other processes are read-only or start at odd addresses. Kernels would be compiled
    again for that, and sum in another order.
    """
    return writeable(aligned(value)) if isinstance(value, np.ndarray) else value


@dataclass(frozen=True)
class BlockSamples:
    """The targets and weights of a block. The scalar loss is sent as source code or by its name."""

    samples: Samples
    scalar: bytes

    @classmethod
    def of(cls, samples: Samples, lo: int, hi: int) -> BlockSamples:
        """Return those of some rows."""
        mine = replace(samples, b=samples.b[lo:hi], weight=samples.weight[lo:hi], scalar=None)
        return cls(mine, cloudpickle.dumps(samples.scalar))

    def ready(self, batch: tuple[int, ...]) -> Samples:
        """Return samples with memory for residuals."""
        mine = self.samples
        b, weight, scalar = usable(mine.b), usable(mine.weight), _function(self.scalar)
        return replace(mine, batch=batch, b=b, weight=weight, scalar=scalar).with_memory()


@lru_cache(maxsize=64)
def _function(pickled: bytes) -> Any:
    """Return the same function each time, because kernels are compiled once for each function."""
    return cloudpickle.loads(pickled)


@sizeof.register(Block)
def _bytes(block: Any) -> int:
    """Return the size of a block in memory, for the scheduler."""
    arrays = block.parts if hasattr(block, "parts") else (block.to_dense(),)
    return int(sum(array.nbytes for array in arrays))


# ------------------------------------------------------------------------------ where tasks run


class ClientClosed(KeyboardInterrupt):
    """The client was closed during a run. As after Ctrl-C, the run ends with its result so far."""


class Threads:
    """Threads of this process, or the scheduler of `dask.config`."""

    overhead = 1e-3  # seconds of a fold, measured with 10 blocks
    copies = False  # whether data are sent elsewhere

    def __init__(self) -> None:
        # A client that is created later does not take over.
        self._run = get_scheduler() or dask.threaded.get
        if self._run is dask.multiprocessing.get:
            warn(
                "The Dask scheduler 'processes' sends all data to other processes in each pass over "
                "them. Use scheduler='threads', or create a distributed.Client.",
                UserWarning,
            )

    def get(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        """Return the answers of some tasks."""
        options = {}
        if not dask.config.get("num_workers", None):
            options["num_workers"] = max(2, _threads.cores())  # one reads while another computes
        return list(self._run(graph, list(keys), **options))

    def keep(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        """Return the answers in a form that other graphs can contain."""
        return self.get(graph, keys)

    def compute(self, collection: Any) -> Any:
        """Return a whole collection."""
        return collection.compute(scheduler=self._run)


class Workers:
    """The workers of a `distributed.Client`."""

    overhead = 1e-2
    copies = True

    def __init__(self, client: Any):
        self.client = client

    def get(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        """Return the answers of some tasks."""
        return self._ask(graph, keys, sync=True)

    def keep(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        """Return futures of the answers."""
        return self._ask(graph, keys, sync=False)

    def _ask(self, graph: dict[Any, Any], keys: Sequence[Any], sync: bool) -> list[Any]:
        # Dask would hash the content of a plain dict, in each fold.
        named = HighLevelGraph.from_collections(f"adagrad_diff-{uuid4().hex}", graph)
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            try:
                return list(self.client.get(named, list(keys), sync=sync))
            except Exception as error:
                if self.client.status == "running":
                    raise
                raise ClientClosed("The client was closed during the run.") from error

    def compute(self, collection: Any) -> Any:
        """Return a whole collection."""
        return self.client.compute(collection).result()


def backend(client: Any = None) -> Threads | Workers:
    """Return the given client, or the current one, or threads if there is none."""
    scheduler = dask.config.get("scheduler", None)  # a new client writes its name there
    may_be_client = scheduler in (None, "dask.distributed", "distributed")
    if client is None and may_be_client and "distributed" in sys.modules:
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
