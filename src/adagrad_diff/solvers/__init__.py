"""Solvers: Algorithm 1 in `proximal_gradient`, the loop around every solver, and their results."""

from .minimize import iterate, minimize
from .result import ConvergenceError, ConvergenceWarning, History, Interrupted, Status
from .scipy_bridge import scipy_method
from .state import State, load_state

__all__ = [
    "ConvergenceError",
    "ConvergenceWarning",
    "History",
    "Interrupted",
    "State",
    "Status",
    "iterate",
    "load_state",
    "minimize",
    "scipy_method",
]
