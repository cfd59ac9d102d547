"""Many trajectories at once: `sweep`, and `named`, for what its checkpoint is to know again."""

from ..solvers.fingerprint import named
from .run import sweep

__all__ = ["named", "sweep"]
