"""Re-exported until the runs without a given step size have moved to `solvers`."""

from ..solvers.history import (
    History,
    Record,
)

__all__ = [
    "History",
    "Record",
]
