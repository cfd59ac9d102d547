"""Penalties: convex functions phi with their proximal operator in a diagonal metric, one per file."""

from .base import Penalty, as_penalty
from .box import Box
from .elastic_net import ElasticNet
from .l1 import L1
from .nonnegative import NonNegative
from .ridge import Ridge
from .zero import Zero

__all__ = ["L1", "Box", "ElasticNet", "NonNegative", "Penalty", "Ridge", "Zero", "as_penalty"]
