"""The pass of a linear model over blocks that live elsewhere: x goes there, value and gradient come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import cloudpickle
import numpy as np

from ..linalg import Block, Samples
from ..linalg.block import aligned, writeable
from ..linalg.source import Pass, added, joined
from ._ways import Packet


@dataclass(frozen=True)
class Held:
    """The targets and weights of a block, which stay beside it. The scalar loss is sent as it is written."""

    samples: Samples
    scalar: bytes

    def ready(self, batch: tuple[int, ...]) -> Samples:
        """With memory for residuals."""
        mine = self.samples
        parts = {
            "b": usable(mine.b),
            "weight": usable(mine.weight),
            "scalar": _function(self.scalar),
        }
        return replace(mine, batch=batch, **parts).with_memory()


def usable(value: Any) -> Any:
    """What came from another process may be marked as not to be written to, or begin at odd places: kernels would be compiled
    once more for that, and sums made in another way."""
    return writeable(aligned(value)) if isinstance(value, np.ndarray) else value


def held(samples: Samples, lo: int, hi: int) -> Held:
    """Those of some samples."""
    mine = replace(samples, b=samples.b[lo:hi], weight=samples.weight[lo:hi], scalar=None)
    return Held(mine, cloudpickle.dumps(samples.scalar))


@lru_cache(maxsize=64)
def _function(written: bytes) -> Any:
    """The same function each time: kernels are compiled once for each."""
    return cloudpickle.loads(written)


@dataclass
class Remembered:
    """The last point that somebody has asked about, and what is known of it: who asks again is answered without a round.

    A start, a proof and a result are all about one point.
    """

    at: Any = None
    known: dict[Any, Any] = field(default_factory=dict)

    def ask(self, at: Any, what: Any, find: Callable[[], Any]) -> Any:
        if at != self.at:
            self.at, self.known = at, {}
        if what not in self.known:
            self.known[what] = find()
        return self.known[what]


class FarPass(Pass):
    """Residuals are not kept: whoever asks for them has them made again, for the trajectories asked for."""

    def __init__(self, merged: Callable[..., Any], samples: list[Any], last: Remembered):
        self._merged, self._samples, self._last = merged, samples, last
        self._x = self._offset = np.empty(0)

    def __call__(
        self, x: np.ndarray, offset: Any, g: np.ndarray, value: np.ndarray, add: bool
    ) -> np.ndarray:
        self._x, self._offset = x.copy(), offset.copy()
        losses, gradient, total = self._ask(_share, self._x, self._offset)
        value += losses
        gradient = gradient.reshape(g.shape)
        np.add(g, gradient, out=g) if add else np.copyto(g, gradient)
        return np.asarray(total[None], g.dtype)

    def residuals(self, columns: Any = slice(None)) -> np.ndarray:
        x, offset = self._x, self._offset
        if x.ndim == 2:
            x, offset = np.ascontiguousarray(x[:, columns]), np.atleast_1d(offset[columns])
        parts = self._ask(_residuals, x, offset, joined)
        return parts[0].reshape(-1, *x.shape[1:])  # type: ignore[no-any-return]

    def _ask(
        self,
        function: Callable[..., Any],
        x: np.ndarray,
        offset: Any,
        merge: Callable[..., Any] = added,
    ) -> Any:
        """One trajectory is the same with an axis of its own and without."""
        x = x[:, 0] if x.shape[1:] == (1,) else x

        def find() -> Any:
            found = self._merged(Packet((function, (x, offset))), self._samples, merge)
            return [np.concatenate(found)] if merge is joined else found

        return self._last.ask((x.shape, x.tobytes(), offset.tobytes()), function, find)

    def fold(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._merged(Packet((_of_samples, (function, args))), self._samples, added)


# ------------------------------------------------------------ of one block


def _share(
    block: Block, own: Held, x: np.ndarray, offset: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the value, the gradient and the sum of the residuals."""
    samples, rows = own.ready(x.shape[1:]), block.shape[0]
    value, g = np.zeros(samples.width), np.empty(x.shape, block.dtype)
    block.linear_pass(samples)(x, offset, 0, rows, g, value, False)
    return value, g, np.asarray(np.sum(samples.r.reshape(rows, -1), axis=0, dtype=np.float64))


@np.errstate(all="ignore")  # what overflows is seen in the value
def _residuals(block: Block, own: Held, x: np.ndarray, offset: Any) -> list[np.ndarray]:
    samples = own.ready(x.shape[1:])
    block.dot(x, samples.r)
    if samples.intercept:
        samples.r[...] += offset
    samples.residuals()(0, block.shape[0], np.zeros(samples.width))
    return [samples.r]


def _of_samples(
    block: Block, own: Held, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    return function(block, own.ready(()), *(usable(value) for value in args))
