"""What a rule remembers, by name and kind, and what it sees of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

POINT = "point"  # one number per coordinate
BLOCK = "block"  # one number per block of coordinates
NUMBER = "number"  # one number per trajectory


class Memory:
    """The arrays of a rule's memory as attributes; to assign to one is to write into it, for a state holds the same arrays."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.__dict__.update(arrays)

    def __getattr__(self, name: str) -> Any:  # only asked for what is not there
        raise AttributeError(f"This rule remembers no {name!r}. Name it in its `memory`, as POINT, BLOCK or NUMBER.")

    def __setattr__(self, name: str, value: Any) -> None:
        array = getattr(self, name)
        if array is value:  # as after +=
            return
        try:
            array[...] = value
        except ValueError:
            raise ValueError(f"memory.{name} has shape {array.shape}, but the rule gives it {np.shape(value)}.") from None


@dataclass
class View:
    """What a rule sees in iteration n = 1, 2, ... of a run.

    Arrays have one axis of coordinates, and one of trajectories if there are several: (d,) or (d, B). Numbers are then (B,).
    """

    labels: np.ndarray | None  # the block of every coordinate; None for single coordinates
    scale: np.ndarray  # one factor per coordinate, or one for all
    eta: np.ndarray  # one step size per trajectory, that of this iteration
    n: Any = 1
    x: Any = None  # x^n
    g: Any = None  # g^n
    f: Any = None  # f(x^n)
    x_prev: Any = None  # x^{n-1} and g^{n-1}, for `learn`; for n = 1 they are x^1 and 0
    g_prev: Any = None
    step: Any = None  # to be written by `move`: the step of the prox
    point: Any = None  # and the point that the prox is applied to
    prox: Any = True  # whether it is, or of which trajectories
    x_next: Any = None  # for `accepts`: the point that was reached, its gradient and loss
    g_next: Any = None
    f_next: Any = None

    @cached_property
    def rows(self) -> np.ndarray:
        """The block of every coordinate, as kernels want it: also if each is one of its own."""
        return np.arange(len(self.x)) if self.labels is None else self.labels

    def columns(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Points or blocks with an axis of trajectories, also if there is one only: the same memory as (d, B)."""
        return tuple(array.reshape(len(array), self.eta.size) for array in arrays)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """What belongs to coordinates, added up over each block."""
        if self.labels is None:
            return values
        total = np.zeros((int(self.labels.max()) + 1, *values.shape[1:]))
        np.add.at(total, self.labels, values)
        return total

    def spread(self, values: np.ndarray) -> np.ndarray:
        """What belongs to blocks, for each of their coordinates."""
        return values if self.labels is None else values[self.labels]

    def restricted(self, size: int) -> tuple[np.ndarray | None, bool]:
        """The blocks of the first `size` coordinates, and whether these share one and the same step."""
        labels = None if self.labels is None else self.labels[:size]
        one = size == 1 or (labels is not None and bool((labels == labels[0]).all()))
        return labels, one and self.scale.size == 1
