"""The pass of a linear model over blocks that live elsewhere: x goes there, value and gradient come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import cloudpickle
import numpy as np

from ..data import Block, Samples
from ..data.block import writeable
from ..data.source import added, joined
from ._ways import Packet


@dataclass(frozen=True)
class Held:
    """The targets and weights of a block, which stay beside it. The scalar loss is sent as it is written."""

    samples: Samples
    scalar: bytes

    def ready(self, batch: tuple[int, ...]) -> Samples:
        """With memory for residuals."""
        mine = self.samples
        parts = {"b": usable(mine.b), "weight": usable(mine.weight), "scalar": _function(self.scalar)}
        return replace(mine, batch=batch, **parts).with_memory()


def usable(value: Any) -> Any:
    """What came from another process may be marked as not to be written to: kernels would be compiled once more for that."""
    return writeable(value) if isinstance(value, np.ndarray) else value


def held(samples: Samples, lo: int, hi: int) -> Held:
    """Those of some samples."""
    mine = replace(samples, b=samples.b[lo:hi], weight=samples.weight[lo:hi], scalar=None)
    return Held(mine, cloudpickle.dumps(samples.scalar))


@lru_cache(maxsize=64)
def _function(written: bytes) -> Any:
    """The same function each time: kernels are compiled once for each."""
    return cloudpickle.loads(written)


class FarPass:
    """Residuals are not kept: whoever asks for them has them made again, for the trajectories asked for."""

    def __init__(self, merged: Callable[..., Any], samples: list[Any], like: Samples):
        self._merged, self._samples, self._like = merged, samples, like
        self._x = self._offset = np.empty(0)
        self._known: dict[Any, np.ndarray] = {}

    def __call__(self, x: np.ndarray, offset: Any, g: np.ndarray, value: np.ndarray, add: bool) -> np.ndarray:
        self._x, self._offset, self._known = x.copy(), offset.copy(), {}
        losses, gradient, total = self._merged(Packet((_share, (self._x, self._offset))), self._samples, added)
        value += losses
        np.add(g, gradient, out=g) if add else np.copyto(g, gradient)
        return np.asarray(total[None], g.dtype)

    def residuals(self, columns: Any = slice(None)) -> np.ndarray:
        if (name := repr(columns)) not in self._known:
            x, offset = self._x, self._offset
            if x.ndim == 2:
                x, offset = np.ascontiguousarray(x[:, columns]), np.atleast_1d(offset[columns])
            parts = self._merged(Packet((_residuals, (x, offset))), self._samples, joined)
            self._known = {name: np.concatenate(parts)}
        return self._known[name]


# ------------------------------------------------------------ of one block


def _share(block: Block, own: Held, x: np.ndarray, offset: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
