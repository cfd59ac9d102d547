"""How much step sizes matter: `sensitivity` compares methods over step sizes, `profile` over problems.

`experiments.paper` reproduces the paper's experiments, `experiments.theory` checks its statements.
"""

from .profiles import profile
from .result import Sensitivity
from .sensitivity import sensitivity

__all__ = ["Sensitivity", "profile", "sensitivity"]
