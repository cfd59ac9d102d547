"""A sweep on a cluster: each chunk is a task, and after half a minute it says how far it is and is handed out again.

So a checkpoint has as much as on one machine, and what a worker takes with it when it dies is computed anew: the same bits, for
what a trajectory computes depends on its chunk only.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ..common.cluster import Cluster
from ..common.threads import one_blas_thread
from .chunks import Chunk, Trajectories
from .parts import Parts

Arrays = dict[str, np.ndarray]


def some_of(trajectories: Trajectories, chunk: Chunk, progress: Arrays | None, seconds: float) -> tuple[Arrays, Arrays | None]:
    """What a worker does: go on with a chunk for so many seconds. Its results, and its progress if it is not through."""
    kept: list[Arrays] = []

    def pause(arrays: Arrays) -> bool:
        kept.append(arrays)
        return True

    with one_blas_thread():
        answer, finished = trajectories.run(chunk, lambda layout: progress, seconds, lambda watch: None, pause)
    return answer, None if finished else kept[0]


class ClusterRun(Parts):
    """Chunks on a cluster; whatever is written is written here, where the sweep was called."""

    def __init__(self, *plan: Any, client: Any, seconds: float, look: float):
        super().__init__(*plan)
        self.client, self.seconds, self.look = client, seconds, look

    def finish(self, bar: Any, interrupt: Any) -> None:
        """Run all chunks, or until somebody interrupts them, or one fails."""
        cluster, n = Cluster(self.client, "sweep", self.trajectories), dict[int, int]()
        waiting = deque(range(len(self.plan)))
        try:
            while (waiting or cluster.running) and not interrupt.requested:
                while waiting and len(cluster.running) < self.jobs:  # more would take more memory than they may
                    self._begin(cluster, waiting.popleft())
                for part, (answer, progress) in cluster.completed(self.look) if cluster.running else ():
                    if progress is None:
                        if self.keeper:
                            self.keeper.finish(part, answer)
                        self._complete(part, answer)
                        continue
                    if self.keeper:
                        self.keeper.keep(part, progress)
                    self.parts[part], n[part] = answer, int(np.max(progress["state.n"]))
                    cluster.submit(part, some_of, self.plan[part], progress, self.seconds)
                bar.update(self.iterations(n) - bar.n)
        except KeyboardInterrupt:  # where Ctrl-C is not delayed
            self.interrupted = True
        finally:
            cluster.cancel()
        self.interrupted |= interrupt.requested

    def _begin(self, cluster: Cluster, part: int) -> None:
        """Hand out a part, unless it is there."""
        if (answer := self.finished(part)) is not None:
            self._complete(part, answer)
            return
        layout = self.trajectories.layout_on_the_way
        progress = self.keeper.progress(part, layout(self.plan[part])) if self.keeper else None
        cluster.submit(part, some_of, self.plan[part], progress, self.seconds)

    def _complete(self, part: int, answer: Arrays) -> None:
        self.parts[part] = answer
        self.complete.add(part)
