"""Losses: convex functions f with a (sub)gradient, one per file; most are linear models."""

from .base import Loss
from .base import Oracle as Oracle
from .base import as_loss as as_loss
from .hinge import Hinge
from .huber import Huber
from .kernel_svm import KernelSVMDual
from .lad import LAD
from .linear import LinearModel
from .logistic import Logistic
from .minibatch import Minibatch
from .multinomial import Multinomial
from .poisson import Poisson
from .quadratic import Quadratic
from .quantile import Quantile
from .squared import Squared
from .squared_hinge import SquaredHinge

__all__ = [
    "LAD",
    "Hinge",
    "Huber",
    "KernelSVMDual",
    "LinearModel",
    "Logistic",
    "Loss",
    "Minibatch",
    "Multinomial",
    "Poisson",
    "Quadratic",
    "Quantile",
    "Squared",
    "SquaredHinge",
]
