"""The parts of a sweep while it runs: which are there, and what to say if it ends before all of them are."""

from __future__ import annotations

import numpy as np

from .checkpoint import Checkpoint
from .chunks import Chunk, Trajectories


class Parts:
    """Answers of the chunks of a plan, whoever computes them."""

    def __init__(self, trajectories: Trajectories, plan: list[Chunk], keeper: Checkpoint | None, jobs: int):
        self.trajectories, self.plan, self.keeper, self.jobs = trajectories, plan, keeper, jobs
        self.parts: list[dict[str, np.ndarray] | None] = [None] * len(plan)
        self.complete: set[int] = set()
        self.interrupted = False
        self.error: BaseException | None = None

    def width(self, part: int) -> int:
        """Trajectories of a part."""
        return self.plan[part].high - self.plan[part].low

    def finished(self, part: int) -> dict[str, np.ndarray] | None:
        """A part that the checkpoint has."""
        layout = self.trajectories.layout(self.width(part))
        return keeper.finished(part, layout) if (keeper := self.keeper) else None

    @property
    def outcome(self) -> str:
        """A sentence or two for somebody who has interrupted it."""
        widths = [chunk.high - chunk.low for chunk in self.plan]
        failure = f" Besides, there was an error: {self.error}" if self.error else ""
        return f"{sum(widths[part] for part in self.complete)} of {sum(widths)} trajectories are finished.{failure}"

    def iterations(self, under_way: dict[int, int]) -> int:
        """Iterations of trajectories so far, those of parts `under_way` included."""
        n = under_way | dict.fromkeys(tuple(self.complete), self.trajectories.n_iter)
        return sum(self.width(part) * count for part, count in n.items())
