"""The parts of a sweep while it runs: which are there, and what to say if it ends before all of them are."""

from __future__ import annotations

import numpy as np

from .checkpoint import Checkpoint
from .chunks import Chunk, Trajectories


class Parts:
    """Answers of the chunks of a plan."""

    def __init__(
        self, trajectories: Trajectories, plan: list[Chunk], keeper: Checkpoint | None, jobs: int
    ):
        self.trajectories, self.plan, self.keeper, self.jobs = trajectories, plan, keeper, jobs
        self.parts: list[dict[str, np.ndarray] | None] = [None] * len(plan)
        self.completed: set[int] = set()
        self.interrupted = False
        self.error: BaseException | None = None

    def width(self, part: int) -> int:
        """Return the number of trajectories of a part."""
        return self.plan[part].high - self.plan[part].low

    def finished(self, part: int) -> dict[str, np.ndarray] | None:
        """Return a part from the checkpoint, if it has it."""
        layout = self.trajectories.layout(self.width(part))
        return keeper.finished(part, layout) if (keeper := self.keeper) else None

    def complete(self, part: int, answer: dict[str, np.ndarray]) -> None:
        """Take in the answer of a finished part."""
        self.parts[part] = answer
        self.completed.add(part)

    @property
    def outcome(self) -> str:
        """A sentence or two for an interrupted sweep."""
        widths = [chunk.high - chunk.low for chunk in self.plan]
        failure = f" Besides, there was an error: {self.error}" if self.error else ""
        return f"{sum(widths[part] for part in self.completed)} of {sum(widths)} trajectories are finished.{failure}"

    def iterations(self, under_way: dict[int, int]) -> int:
        """Return the iterations of all trajectories so far, those of parts `under_way` included."""
        n = under_way | dict.fromkeys(tuple(self.completed), self.trajectories.n_iter)
        return sum(self.width(part) * count for part, count in n.items())
