"""A source whose blocks are the partitions of a Dask collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any
from uuid import uuid4

import numpy as np
from dask.sizeof import sizeof

from .._threads import one_blas_thread
from ..linalg import Block, Samples, Source
from ..linalg.block import Pass
from ..linalg.source import added, joined, stacked
from ._rows import Parts, is_collection, load, parts
from ._tasks import (
    BlockSamples,
    Packet,
    Threads,
    Workers,
    apply,
    backend,
    beside,
    identity,
    merge_answers,
    usable,
)

MERGED_TOGETHER = 8  # answers that one task merges: always the same ones, for reproducible sums
LARGE_PACKET = 1 << 18  # bytes from which on the arguments of a fold are sent to each worker once
KEPT_SAMPLES = 4  # pairs of targets and weights that stay with the blocks


class Partitions(Source):
    """A in blocks of rows that stay where they are, or are read again for every fold.

    Each fold is one graph: a task per block, and a tree of merges whose shape depends only on the
    number of blocks. The last few answers are merged in this process.
    """

    far = True

    def __init__(self, rows: Parts, where: Threads | Workers, persist: bool, name: str):
        self.dtype, self.token, self.columns = rows.dtype, rows.token, rows.columns
        self._backend, self.overhead, self._origin = where, where.overhead, rows.origin
        self._samples: dict[Any, Any] = {}
        self._columns: dict[str, Any] = {}  # the last weights, and the facts about columns for them
        self._persist = persist
        self._graph = {} if persist else rows.graph  # of the tasks that read blocks
        self._blocks = self._loading(rows, name, finite=True)
        if persist:
            task = _fresh("load")
            checked = {(task, k): block for k, block in enumerate(self._blocks)}
            self._blocks = where.keep({**rows.graph, **checked}, list(checked))
        facts = self._answers(Packet((_facts, ())), self._blocks)
        if not persist:
            self._blocks = self._loading(rows, name, finite=False)
        used = [k for k, (samples, _, _) in enumerate(facts) if samples]
        widths = {facts[k][1] for k in used}
        if len(widths) != 1 or 0 in widths:
            what = f"Its blocks have {sorted(widths)} columns" if widths else "It has no rows"
            raise ValueError(
                f"{name} must have at least one sample and one feature, the same ones in all blocks. "
                f"{what}."
            )
        self._blocks = [self._blocks[k] for k in used]
        self.cuts = [0, *accumulate(facts[k][0] for k in used)]
        self.shape, self._size = (self.cuts[-1], widths.pop()), sum(facts[k][2] for k in used)

    def _loading(self, rows: Parts, name: str, finite: bool) -> list[Any]:
        """Return a task for each block."""
        width = None if rows.columns is None else len(rows.columns)
        return [
            (load, keys, f"Block {k} of {name}", width, rows.dtype.str, finite)
            for k, keys in enumerate(rows.keys)
        ]

    @property
    def size(self) -> int:
        """Stored entries."""
        return int(self._size)

    @property
    def client(self) -> Any:
        """The client whose workers have the blocks; None for this process."""
        return getattr(self._backend, "client", None)

    def check(self, name: str) -> None:
        """Do nothing: blocks are checked when the source is created."""

    def blocks(self) -> Iterator[Block]:
        """Bring the blocks to this process, one by one."""
        call = Packet((_itself, ()))
        for block, lo in zip(self._blocks, self.cuts[:-1], strict=True):
            yield self._answers(call, [block], first=[lo])[0]

    def fold(
        self,
        function: Callable[..., Any],
        *args: Any,
        along: tuple[np.ndarray, ...] = (),
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """Return the merged values of function(block, *along, *args)."""
        own = [Packet([vector[lo:hi] for vector in along]) for lo, hi in pairwise(self.cuts)]
        return self.merged(Packet((function, args)), own, merge or added)

    def merged(self, call: Packet, own: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
        """Return the answers of all blocks, merged in a fixed order."""
        return merge_answers(merge, self._answers(call, self._blocks, own, self.cuts, merge))

    def _answers(
        self,
        call: Packet,
        blocks: list[Any],
        own: list[Any] | None = None,
        first: Sequence[int] | None = None,
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> list[Any]:
        """Return the answers of the blocks in their order; with `merge`, a few merged ones."""
        name, graph = _fresh("fold"), dict(self._graph)
        shared: Any = call
        if self._backend.copies and len(blocks) > 1 and sizeof(call.content[1]) > LARGE_PACKET:
            shared = _fresh("call")
            graph[shared] = (identity, call)
        keys: list[Any] = [(name, k) for k in range(len(blocks))]
        for k, key in enumerate(keys):
            start, mine = 0 if first is None else first[k], None if own is None else own[k]
            graph[key] = (apply, blocks[k], start, shared, mine)
        # Lists are joined in this process.
        while merge not in (None, joined) and len(keys) > MERGED_TOGETHER:
            name, width = _fresh("merge"), MERGED_TOGETHER
            groups = [keys[k : k + width] for k in range(0, len(keys), width)]
            keys = [(name, k) for k in range(len(groups))]
            graph |= {(name, k): (merge_answers, merge, group) for k, group in enumerate(groups)}
        with one_blas_thread():  # its last digits depend on the number of threads
            return self._backend.get(graph, keys)

    # -------------------------------------------------------------------------- more than sums

    def linear_pass(self, samples: Samples) -> RemotePass:
        """Return the pass. Targets and weights stay with the blocks."""
        arrays = ("b", "weight", "r", "batch")
        others = (value for name, value in vars(samples).items() if name not in arrays)
        key = (id(samples.b), id(samples.weight), type(samples), *others)
        known = self._samples.pop(key, None)
        if known is None:  # the samples are kept because their ids must stay unique
            known = samples, self._keep_samples(samples), dict[Any, Any]()
        self._samples[key] = known
        if len(self._samples) > KEPT_SAMPLES:
            del self._samples[next(iter(self._samples))]
        return RemotePass(self.merged, *known[1:])

    def _keep_samples(self, samples: Samples) -> list[Any]:
        name = _fresh("samples")
        graph = {}
        for k, (lo, hi) in enumerate(pairwise(self.cuts)):
            block = self._blocks[k] if self._persist else None
            graph[name, k] = (beside, Packet(BlockSamples.of(samples, lo, hi)), block)
        return self._backend.keep(graph, list(graph))

    def moments(self, weight: np.ndarray) -> Any:
        """Return moments of the columns."""
        return self._once(super().moments, weight)

    def column_sizes(self, weight: np.ndarray) -> Any:
        """Return weighted sums of absolute values for each column."""
        return self._once(super().column_sizes, weight)

    def _once(self, method: Callable[[np.ndarray], Any], weight: np.ndarray) -> Any:
        name = method.__name__
        if name not in self._columns or self._columns[name][0] is not weight:
            self._columns[name] = weight, method(weight)
        return self._columns[name][1]

    def dot(self, x: np.ndarray, z: np.ndarray) -> None:
        """Set z = A x."""
        np.concatenate(self.fold(_product, x, z.dtype, merge=joined), out=z)

    def rows(self, index: np.ndarray) -> Block:
        """Return a few rows."""
        return stacked(self._of_some(index, _rows))

    def entries(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return a few rows of a few columns."""
        return np.concatenate(self._of_some(index, _entries, columns))

    def _of_some(self, index: np.ndarray, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return function(block, part of the index, *args) for blocks that have some of the rows."""
        places = list(self.places(index))
        own = [Packet([part - lo]) for _, lo, part in places]
        return self._answers(Packet((function, args)), [self._blocks[k] for k, _, _ in places], own)


class RemotePass(Pass):
    """The pass of a linear model over remote blocks: x goes there, value and gradient come back.

    Residuals stay there; they are computed again when they are needed. `memo` holds the answers at
    the last x, because a start, a certificate and a result are often about the same point.
    """

    def __init__(self, merged: Callable[..., Any], samples: list[Any], memo: dict[Any, Any]):
        self._merged, self._samples, self._memo = merged, samples, memo
        self._x = self._offset = np.empty(0)

    def __call__(
        self, x: np.ndarray, offset: Any, g: np.ndarray, value: np.ndarray, add: bool
    ) -> np.ndarray:
        """Add the loss to `value`, set g, and return the sum of the residuals."""
        self._x, self._offset = x.copy(), offset.copy()
        losses, gradient, total = self._ask(_share, self._x, self._offset, added)
        value += losses
        gradient = gradient.reshape(g.shape)
        np.add(g, gradient, out=g) if add else np.copyto(g, gradient)
        return np.asarray(total[None], g.dtype)

    def residuals(self, columns: Any = slice(None)) -> np.ndarray:
        """Return the residuals at the last x."""
        x, offset = self._x, self._offset
        if x.ndim == 2:
            x, offset = np.ascontiguousarray(x[:, columns]), np.atleast_1d(offset[columns])
        blocks = self._ask(_residuals, x, offset, joined)
        return np.concatenate(blocks).reshape(-1, *x.shape[1:])

    def fold(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the sum of function(block, its samples, *args)."""
        return self._merged(Packet((_with_samples, (function, args))), self._samples, added)

    def _ask(
        self, function: Callable[..., Any], x: np.ndarray, offset: Any, merge: Callable[..., Any]
    ) -> Any:
        x = x[:, 0] if x.shape[1:] == (1,) else x  # one trajectory, with and without its axis
        point = (x.shape, x.tobytes(), offset.tobytes())
        if self._memo.get("point") != point:
            self._memo.clear()
            self._memo["point"] = point
        if function not in self._memo:
            call = Packet((function, (x, offset)))
            self._memo[function] = self._merged(call, self._samples, merge)
        return self._memo[function]


def _fresh(what: str) -> str:
    """Return a unique name. The scheduler learns from its beginning how long such tasks take."""
    return f"adagrad_diff_{what}-{uuid4().hex}"


# ------------------------------------------------------------------------------ of one block


def _facts(block: Block) -> tuple[int, int, int]:
    return (*block.shape, block.size)


def _itself(block: Block) -> Block:
    return block


def _product(block: Block, x: np.ndarray, dtype: Any) -> list[np.ndarray]:
    block.dot(x, z := np.empty((block.shape[0], *x.shape[1:]), dtype))
    return [z]


def _rows(block: Block, index: np.ndarray) -> Block:
    return block.rows(index)


def _entries(block: Block, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return block.entries(index, columns)


def _share(
    block: Block, own: BlockSamples, x: np.ndarray, offset: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the share of a block of the value, the gradient and the sum of the residuals."""
    samples, rows = own.ready(x.shape[1:]), block.shape[0]
    value, g = np.zeros(samples.width), np.empty(x.shape, block.dtype)
    block.linear_pass(samples)(x, offset, 0, rows, g, value, False)
    return value, g, np.asarray(np.sum(samples.r.reshape(rows, -1), axis=0, dtype=np.float64))


@np.errstate(all="ignore")  # an overflow shows in the value
def _residuals(block: Block, own: BlockSamples, x: np.ndarray, offset: Any) -> list[np.ndarray]:
    samples = own.ready(x.shape[1:])
    block.dot(x, samples.r)
    if samples.intercept:
        samples.r[...] += offset
    samples.residuals()(0, block.shape[0], np.zeros(samples.width))
    return [samples.r]


def _with_samples(
    block: Block, own: BlockSamples, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    return function(block, own.ready(()), *(usable(value) for value in args))


# ------------------------------------------------------------------------------ from collections


def source(A: Any, client: Any = None, persist: bool | None = None, name: str = "A") -> Source:
    """Return a Dask collection, or an array on disk, as a `Source` that every loss accepts.

    Parameters
    ----------
    A : Dask array (N, d), Dask data frame, np.memmap, Zarr or HDF5 array
        Chunks may be arrays or SciPy matrices, of any number of rows, known or not. Columns of a
        data frame are numbers. float32 stays float32, everything else becomes float64.
    client : distributed.Client, optional
        The client whose workers do the work. By default the current one; if there is none, threads
        of this process.
    persist : bool, optional
        Whether blocks are kept in the memory of the workers. By default this is so for Dask
        collections, and arrays on disk are read again in each iteration, so that only the few
        blocks that are in use are in memory.
    name : str
        Name of A in messages.

    Returns
    -------
    Source
        All blocks have been read once. An entry that is not finite is an error that names its
        block.

    Examples
    --------
    >>> import dask.array as da
    >>> from adagrad_diff import L1, Squared, minimize
    >>> from adagrad_diff.dask import source
    >>> A = da.random.default_rng(0).standard_normal((600, 5), chunks=(200, 5))
    >>> loss = Squared(source(A), (A @ [1.0, 0.0, 0.0, 2.0, 0.0]).compute())
    >>> abs(minimize(loss, penalty=L1(0.1), tol=1e-6).x).round(1).tolist()
    [0.9, 0.0, 0.0, 1.9, 0.0]
    """
    if isinstance(A, Source):
        return A
    keep = is_collection(A) if persist is None else bool(persist)
    return Partitions(parts(A, name), backend(client), keep, name)


def local(values: Any, client: Any = None) -> Any:
    """Return a Dask collection as an array of this process, and other values as they are."""
    if not is_collection(values):
        return values
    return np.asanyarray(backend(client).compute(values))  # masks are an error later


def for_collections(kind: Any) -> Callable[..., Any]:
    """Return a function that creates such a loss for Dask collections."""

    def make(
        A: Any,
        b: Any,
        *args: Any,
        sample_weight: Any = None,
        client: Any = None,
        persist: Any = None,
        **options: Any,
    ) -> Any:
        weight = local(sample_weight, client)
        rows = source(A, client, persist)
        return kind(rows, local(b, client), *args, sample_weight=weight, **options)

    make.__name__ = make.__qualname__ = kind.__name__
    make.__doc__ = f"""Return `adagrad_diff.{kind.__name__}` of Dask collections.

    Parameters
    ----------
    A, client, persist
        As for `adagrad_diff.dask.source`.
    b, sample_weight : array (N,), Dask array or series
        They are brought to this process, and those of a block are kept with it.
    *args, **options
        The other parameters of `adagrad_diff.{kind.__name__}`.

    Returns
    -------
    {kind.__name__}
        An ordinary loss, for `minimize`, `sweep` and all others.
    """
    return make
