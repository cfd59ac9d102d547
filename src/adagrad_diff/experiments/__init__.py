"""How much step sizes matter: `sensitivity` compares methods over them, `profile` over problems.

`experiments.paper` reproduces the paper's experiments, `experiments.theory` checks its statements.
"""

from .convex import sensitivity
from .result import Sensitivity, profile

__all__ = ["Sensitivity", "profile", "sensitivity"]
