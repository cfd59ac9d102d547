"""How much step sizes matter: `sensitivity` compares rules, `profile` over several problems; how figures look, and results that
are written whole or not at all."""

from .profiles import profile
from .result import Sensitivity
from .sensitivity import sensitivity

__all__ = ["Sensitivity", "profile", "sensitivity"]
