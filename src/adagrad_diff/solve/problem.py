"""Re-exported until the runs without a given step size have moved to `solvers`."""

from ..solvers.fingerprint import (
    check_same,
    recognise,
)

__all__ = [
    "check_same",
    "recognise",
]
