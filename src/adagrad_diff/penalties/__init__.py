"""Penalties: convex functions phi with their proximal operator in a diagonal metric, one per file."""

from .affine import Affine
from .base import Penalty
from .base import QuadraticTerms as QuadraticTerms
from .box import Box, NonNegative
from .box_hyperplane import BoxHyperplane
from .chain import FusedLasso, TotalVariation1D
from .elastic_net import L1, ElasticNet, Ridge
from .foreign import Foreign as Foreign
from .foreign import as_penalty as as_penalty
from .group_l2 import GroupL2, SparseGroupL2
from .huber import HuberPenalty
from .hyperplane import HalfSpace, Hyperplane
from .l1_ball import L1Ball, Simplex
from .l2 import L2, L2Ball
from .linf import LInf, LInfBall
from .monotone import Monotone
from .nuclear import Nuclear
from .numerical import NumericalProx
from .psd import PSD
from .separable import Separable, Unpenalised
from .slope import SLOPE
from .transformed import Precomposed, Scaled, Translated
from .zero import Zero

__all__ = [
    "L1",
    "L2",
    "PSD",
    "SLOPE",
    "Affine",
    "Box",
    "BoxHyperplane",
    "ElasticNet",
    "FusedLasso",
    "GroupL2",
    "HalfSpace",
    "HuberPenalty",
    "Hyperplane",
    "L1Ball",
    "L2Ball",
    "LInf",
    "LInfBall",
    "Monotone",
    "NonNegative",
    "Nuclear",
    "NumericalProx",
    "Penalty",
    "Precomposed",
    "Ridge",
    "Scaled",
    "Separable",
    "Simplex",
    "SparseGroupL2",
    "TotalVariation1D",
    "Translated",
    "Unpenalised",
    "Zero",
]
