"""Many trajectories at once: `sweep`, and `named`, for what its checkpoint is to know again."""

from ..common.describe import named
from .run import sweep

__all__ = ["named", "sweep"]
