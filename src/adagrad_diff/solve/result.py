"""Re-exported until the runs without a given step size have moved to `solvers`."""

from ..solvers.result import (
    Result,
)

__all__ = [
    "Result",
]
