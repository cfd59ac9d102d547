"""What users call, `minimize`, and runs without a given step size."""

from .run import minimize
from .scipy_bridge import scipy_method
from .state import load_state

__all__ = ["load_state", "minimize", "scipy_method"]
