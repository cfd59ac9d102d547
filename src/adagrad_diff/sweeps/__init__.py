"""Many trajectories in one call: `sweep`, and `named` for functions in its checkpoint."""

from ..solvers.fingerprint import named
from .sweep import sweep

__all__ = ["named", "sweep"]
