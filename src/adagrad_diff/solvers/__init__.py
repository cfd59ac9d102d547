"""Solvers: Algorithm 1 in `proximal_gradient`, the loop around every solver, and their results."""

from .history import History
from .minimize import iterate
from .state import State
from .status import ConvergenceError, ConvergenceWarning, Interrupted, Status

__all__ = [
    "ConvergenceError",
    "ConvergenceWarning",
    "History",
    "Interrupted",
    "State",
    "Status",
    "iterate",
]
