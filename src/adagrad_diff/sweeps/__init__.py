"""Many trajectories at once: `sweep`, its chunks, checkpoint and dataset, and the names by which a checkpoint knows functions."""

from ..common.describe import named
from .run import sweep

__all__ = ["named", "sweep"]
