"""What workers do with a block: functions of a module, so that they are sent by name."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import reduce
from typing import Any

import numpy as np
from dask.sizeof import sizeof

from ..linalg import Block
from ._pass import Held, usable
from ._ways import Packet, identity


def apply(block: Block, first: int, call: Any, own: Any) -> Any:
    """function(block, what belongs to its samples, what all blocks get)"""
    function, args = identity(call)
    block.first, mine = first, identity(own)
    mine = [mine] if isinstance(mine, Held) else mine or []
    return function(block, *(usable(value) for value in (*mine, *args)))


def merge_parts(merge: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """What belongs to other tasks is not changed: they may be asked again."""
    return reduce(merge, parts[1:], deepcopy(parts[0]))


def beside(packet: Packet, block: Any) -> Any:
    """Where the block is."""
    return identity(packet)


def facts_of(block: Block) -> tuple[int, int, int]:
    return (*block.shape, block.size)


def about_columns(block: Block, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sums = block.column_sums(weight)
    return sums[:3], sums[3]


def itself(block: Block) -> Block:
    return block


def product(block: Block, x: np.ndarray, dtype: Any) -> np.ndarray:
    block.dot(x, z := np.empty((block.shape[0], *x.shape[1:]), dtype))
    return z


def some_rows(block: Block, index: np.ndarray) -> Block:
    return block.rows(index)


def some_entries(block: Block, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return block.entries(index, columns)


@sizeof.register(Block)
def _bytes(block: Any) -> int:
    """What the scheduler counts."""
    arrays = block.parts if hasattr(block, "parts") else (block.to_dense(),)
    return int(sum(array.nbytes for array in arrays))
