"""A sweep on a cluster: each chunk is a task, and what a worker loses when it dies is computed again."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ..common.cluster import Cluster
from ..common.threads import one_blas_thread
from .chunks import Chunk, Trajectories
from .parts import Parts


def computed(trajectories: Trajectories, chunk: Chunk) -> dict[str, np.ndarray]:
    """Return the results of a chunk; this is what a worker does."""
    with one_blas_thread():
        return trajectories.run(chunk, lambda: False, lambda loop: None)[0]


class ClusterRun(Parts):
    """Chunks on a cluster; the process that calls `sweep` writes the checkpoint."""

    def __init__(self, *plan: Any, client: Any, look: float):
        super().__init__(*plan)
        self.client, self.look = client, look

    def finish(self, bar: Any, interrupt: Any) -> None:
        """Run all chunks, or until Ctrl-C, or until one fails."""
        cluster, waiting = (
            Cluster(self.client, "sweep", self.trajectories),
            deque(range(len(self.plan))),
        )
        try:
            while (waiting or cluster.running) and not interrupt.requested:
                while (
                    waiting and len(cluster.running) < self.jobs
                ):  # more would take more memory than they may
                    part = waiting.popleft()
                    if (answer := self.finished(part)) is not None:
                        self.complete(part, answer)
                    else:
                        cluster.submit(part, computed, self.plan[part])
                for part, answer in cluster.completed(self.look) if cluster.running else ():
                    if self.keeper:
                        self.keeper.finish(part, answer)
                    self.complete(part, answer)
                bar.update(self.iterations({}) - bar.n)
        except KeyboardInterrupt:  # where Ctrl-C is not delayed
            self.interrupted = True
        finally:
            cluster.cancel()
