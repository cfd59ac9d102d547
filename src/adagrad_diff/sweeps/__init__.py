"""Many trajectories at once: `sweep`, its chunks, checkpoint and dataset."""

from .run import sweep

__all__ = ["sweep"]
