"""What a rule remembers, by name and kind, and what it sees of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


class Memory:
    """The arrays of a rule's memory as attributes; to assign to one is to write into it, for a state holds the same arrays."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.__dict__.update(arrays)

    def __getattr__(self, name: str) -> Any:  # only asked for what is not there
        raise AttributeError(f"This rule remembers no {name!r}.")

    def __setattr__(self, name: str, value: Any) -> None:
        array = getattr(self, name)
        if array is value:  # as after +=
            return
        try:
            array[...] = value
        except ValueError:
            raise ValueError(
                f"memory.{name} has shape {array.shape}, but the rule gives it {np.shape(value)}."
            ) from None


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

    def restricted(self, size: int) -> tuple[np.ndarray | None, bool]:
        """The blocks of the first `size` coordinates, and whether these share one and the same step."""
        labels = None if self.labels is None else self.labels[:size]
        one = size == 1 or (labels is not None and bool((labels == labels[0]).all()))
        return labels, one and self.scale.size == 1
