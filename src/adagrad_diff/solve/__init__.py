"""Algorithm 1 (`algorithm`), its state, the driver that watches it, and what users call: `minimize` and `iterate`."""

from .algorithm import iterate
from .history import History
from .run import minimize
from .scipy_bridge import scipy_method
from .state import State, load_state
from .status import ConvergenceError, ConvergenceWarning, Interrupted, Status

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
