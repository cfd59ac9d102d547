"""What is recorded of a run: rows as they come, arrays for those who read them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(repr=False)
class History:
    """What was recorded, one entry per recorded iteration; with trajectories, (entries, B), NaN after one has ended."""

    iteration: np.ndarray  # n, counted from the very first start
    objective: np.ndarray  # F(x^{n+1})
    mean_step: np.ndarray  # mean over coordinates of eta / w^n
    subgradient_norm: np.ndarray  # ||u^{n+1}||
    time: (
        np.ndarray
    )  # seconds since this call began; with a checkpoint, of all the calls that have worked on it
    passes: np.ndarray  # over the data: one for each gradient, of all trajectories at once; with minibatches, a part of one

    def __repr__(self) -> str:
        if not len(self.iteration):
            return "History(nothing recorded)"
        return f"History({len(self.iteration)} entries, iterations {self.iteration[0]} to {self.iteration[-1]})"


class Record:
    """The history of a run as it grows. `shape` is that of the trajectories, () without."""

    def __init__(self, shape: tuple[int, ...], past: History | None = None):
        self.shape, self.rows = shape, list[tuple[Any, ...]]()
        self._past = past  # what is packed already: a long record is not packed anew each time somebody looks at it

    def add(self, *row: Any) -> None:
        """One more row: iteration, objective, mean step, subgradient norm, time, passes."""
        self.rows.append(row)

    def history(self) -> History:
        """All of it, as arrays."""
        if self.rows or self._past is None:
            columns = list(zip(*self.rows, strict=True)) or [()] * 6
            shapes = [(), self.shape, self.shape, self.shape, (), ()]
            arrays = [
                np.array(c, np.float64).reshape(-1, *s)
                for c, s in zip(columns, shapes, strict=True)
            ]
            arrays[0] = arrays[0].astype(np.int64)
            if self._past is not None:
                pairs = zip(
                    (getattr(self._past, field.name) for field in fields(History)),
                    arrays,
                    strict=True,
                )
                arrays = [np.concatenate(pair) for pair in pairs]
            self._past = History(*arrays)
            self.rows.clear()
        return self._past
