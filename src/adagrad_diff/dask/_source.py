"""A source whose blocks are the partitions of a Dask collection."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any
from uuid import uuid4

import numpy as np
from dask.sizeof import sizeof

from .._threads import one_blas_thread
from ..linalg import Block, Samples, Source
from ..linalg.source import Moments, added, joined, stacked
from ._pass import FarPass, Remembered, held
from ._rows import Parts, load
from ._tasks import (
    about_columns,
    apply,
    beside,
    facts_of,
    itself,
    merge_parts,
    product,
    some_entries,
    some_rows,
)
from ._ways import Packet, Threads, Workers, identity

MERGED_TOGETHER = (
    8  # answers that are merged at once, always the same ones: sums do not depend on who makes them
)
LARGE_PACKET = 1 << 18  # bytes above which what all tasks need is sent to each worker once
KEPT_SAMPLES = 4  # targets and weights that are left with the blocks


class Partitions(Source):
    """A in blocks of rows that live where `way` keeps them, or are read again for every fold.

    Each fold is one graph: a task per block, and a tree of merges whose shape depends on nothing but the number of blocks. The
    last few answers are merged here.
    """

    far = True

    def __init__(self, rows: Parts, way: Threads | Workers, persist: bool, name: str):
        self.dtype, self.token, self.columns = rows.dtype, rows.token, rows.columns
        self._way, self.overhead, self._origin = way, way.overhead, rows.origin
        self._samples: OrderedDict[Any, Any] = OrderedDict()
        self._columns: tuple[np.ndarray, Any] | None = (
            None  # the last weights, and what was found for them
        )
        width = None if rows.columns is None else len(rows.columns)
        self._persist, self._graph = (
            persist,
            {} if persist else rows.graph,
        )  # what the tasks that read blocks need
        self._blocks = self._loading(rows, name, width, finite=True)
        if persist:
            task = _fresh("load")
            checked = {(task, k): block for k, block in enumerate(self._blocks)}
            self._blocks = way.keep({**rows.graph, **checked}, list(checked))
        facts = self._answers(Packet((facts_of, ())), self._blocks, [None] * len(self._blocks))
        if not persist:
            self._blocks = self._loading(rows, name, width, finite=False)
        self._place(facts, name)

    def _loading(self, rows: Parts, name: str, width: int | None, finite: bool) -> list[Any]:
        """A task for each block. What is not kept is read within the task that needs it: a task takes some 0.1 ms."""
        return [
            (load, keys, f"Block {k} of {name}", width, rows.dtype.str, finite)
            for k, keys in enumerate(rows.keys)
        ]

    def _place(self, facts: list[tuple[int, int, int]], name: str) -> None:
        """Where blocks begin, now that they have been seen; those without rows are left out."""
        used = [k for k, (samples, _, _) in enumerate(facts) if samples]
        widths = {facts[k][1] for k in used}
        if len(widths) != 1 or 0 in widths:
            what = f"Its blocks have {sorted(widths)} columns" if widths else "It has no rows"
            raise ValueError(
                f"{name} must have at least one sample and one feature, the same ones in all blocks. {what}."
            )
        self._blocks = [self._blocks[k] for k in used]
        self.cuts = [0, *accumulate(facts[k][0] for k in used)]
        self.shape, self._size = (self.cuts[-1], widths.pop()), sum(facts[k][2] for k in used)

    @property
    def size(self) -> int:
        return self._size

    @property
    def client(self) -> Any:
        """Whose workers have the blocks; None if they are here."""
        return getattr(self._way, "client", None)

    def check(self, name: str) -> None:
        """It was checked when it was made."""

    def blocks(self) -> Iterator[Block]:
        """One by one, to this process."""
        call = Packet((itself, ()))
        return (
            self._answers(call, [block], [None], [lo])[0]
            for block, lo in zip(self._blocks, self.cuts[:-1], strict=True)
        )

    # ------------------------------------------------------------ folds

    def fold(
        self,
        function: Callable[..., Any],
        *args: Any,
        along: tuple[np.ndarray, ...] = (),
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        own = [Packet([vector[lo:hi] for vector in along]) for lo, hi in pairwise(self.cuts)]
        return self.merged(Packet((function, args)), own, merge or added)

    def merged(self, call: Packet, own: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
        """function(block, *own, *args) of every block, merged in a fixed order."""
        answers = self._answers(call, self._blocks, own, self.cuts, merge)
        return reduce(merge, answers[1:], deepcopy(answers[0]) if len(answers) > 1 else answers[0])

    def _answers(
        self,
        call: Packet,
        blocks: list[Any],
        own: list[Any],
        first: Sequence[int] | None = None,
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> list[Any]:
        """Those of the blocks, in their order; with `merge`, a few of them at a time until few are left."""
        name, graph = _fresh("fold"), dict(self._graph)
        shared: Any = call
        if self._way.copies and len(blocks) > 1 and sizeof(call.content[1]) > LARGE_PACKET:
            shared = _fresh("call")
            graph[shared] = (identity, call)
        keys: list[Any] = [(name, k) for k in range(len(blocks))]
        for k, key in enumerate(keys):
            graph[key] = (apply, blocks[k], 0 if first is None else first[k], shared, own[k])
        while (
            merge not in (None, joined) and len(keys) > MERGED_TOGETHER
        ):  # what is only put side by side is best put here
            name, groups = (
                _fresh("merge"),
                [keys[k : k + MERGED_TOGETHER] for k in range(0, len(keys), MERGED_TOGETHER)],
            )
            keys = [(name, k) for k in range(len(groups))]
            graph |= {
                key: (merge_parts, merge, group) for key, group in zip(keys, groups, strict=True)
            }
        with (
            one_blas_thread()
        ):  # blocks keep the cores busy; and the last digits depend on how many threads BLAS has
            return self._way.get(graph, keys)

    # ------------------------------------------------------------ what is not a sum

    def linear_pass(self, samples: Samples) -> FarPass:
        """Targets and weights are left with the blocks."""
        arrays = ("b", "weight", "r", "batch")
        key = (
            id(samples.b),
            id(samples.weight),
            *(v for name, v in vars(samples).items() if name not in arrays),
            type(samples),
        )
        if key not in self._samples:
            # The arrays too, so that no others have their ids.
            self._samples[key] = samples, self._left(samples), Remembered()
            while len(self._samples) > KEPT_SAMPLES:
                self._samples.popitem(last=False)
        self._samples.move_to_end(key)
        return FarPass(self.merged, *self._samples[key][1:])

    def moments(self, weight: np.ndarray) -> Moments:
        return self.with_variances(Moments(*self._about_columns(weight)[0]), weight)

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        sizes: np.ndarray = self._about_columns(weight)[1]
        return sizes

    def _about_columns(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Moments and sizes in one fold: a run that is proven asks for both, some of them several times."""
        if self._columns is None or self._columns[0] is not weight:
            self._columns = weight, self.fold(about_columns, along=(weight,))
        found: tuple[np.ndarray, np.ndarray] = self._columns[1]
        return found

    def _left(self, samples: Samples) -> list[Any]:
        name, blocks = (
            _fresh("samples"),
            self._blocks if self._persist else [None] * len(self._blocks),
        )
        parts = [Packet(held(samples, lo, hi)) for lo, hi in pairwise(self.cuts)]
        graph = {(name, k): (beside, part, blocks[k]) for k, part in enumerate(parts)}
        return self._way.keep(graph, list(graph))

    def dot(self, x: np.ndarray, z: np.ndarray) -> None:
        call = Packet((product, (x, z.dtype)))
        for k, part in enumerate(self._answers(call, self._blocks, [None] * len(self._blocks))):
            z[self.cuts[k] : self.cuts[k + 1]] = part

    def rows(self, index: np.ndarray) -> Block:
        return stacked(self._of_some(index, some_rows))

    def entries(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.concatenate(self._of_some(index, some_entries, columns))

    def _of_some(self, index: np.ndarray, function: Callable[..., Any], *args: Any) -> list[Any]:
        """function(block, its part of the index, *args) of the blocks that have some of the rows."""
        places = list(self.places(index))
        own = [Packet([part - lo]) for _, lo, part in places]
        return self._answers(Packet((function, args)), [self._blocks[k] for k, _, _ in places], own)


def _fresh(what: str) -> str:
    """A name that no other graph has; from the part before it, the scheduler knows how long such tasks take."""
    return f"adagrad_diff_{what}-{uuid4().hex}"
