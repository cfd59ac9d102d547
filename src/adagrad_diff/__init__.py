"""AdaGrad-Diff: adaptive proximal gradient steps driven by differences of successive gradients.

w_i^n = eps + sqrt( sum_{k=1..n} ||g_i^k - g_i^{k-1}||^2 ),  g^0 = 0          (the metric)
x^{n+1} = prox^{W_n}_{eta phi}( x^n - eta W_n^{-1} g^n )                       (the step)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ._driver import History
    from ._minimize import iterate, minimize
    from ._scipy import scipy_method
    from ._state import State, load_state
    from ._status import ConvergenceError, ConvergenceWarning, Interrupted, Status
    from ._sweep import sweep
    from .certificates import Certificate, duality_gap
    from .critical import at_fraction, critical_lam
    from .losses import (
        LAD,
        Hinge,
        Huber,
        KernelSVMDual,
        LinearModel,
        Logistic,
        Loss,
        Multinomial,
        Poisson,
        Quadratic,
        Quantile,
        Squared,
        SquaredHinge,
    )
    from .penalties import (
        L1,
        L2,
        PSD,
        SLOPE,
        Affine,
        Box,
        BoxHyperplane,
        ElasticNet,
        FusedLasso,
        GroupL2,
        HalfSpace,
        HuberPenalty,
        Hyperplane,
        L1Ball,
        L2Ball,
        LInf,
        LInfBall,
        Monotone,
        NonNegative,
        Nuclear,
        NumericalProx,
        Penalty,
        Precomposed,
        Ridge,
        Scaled,
        Separable,
        Simplex,
        SparseGroupL2,
        TotalVariation1D,
        Translated,
        Unpenalised,
        Zero,
    )
    from .rules import AdaGrad, AdaGradDiff, Rule

# The table of contents. A name is imported when it is first used: SciPy and Numba take a second, this module does not.
_CONTENTS = {
    "_minimize": ("iterate", "minimize"),
    "_sweep": ("sweep",),
    "_scipy": ("scipy_method",),
    "_state": ("State", "load_state"),
    "_driver": ("History",),
    "_status": ("ConvergenceError", "ConvergenceWarning", "Interrupted", "Status"),
    "rules": ("AdaGrad", "AdaGradDiff", "Rule"),
    "losses": (
        "Hinge",
        "Huber",
        "KernelSVMDual",
        "LAD",
        "LinearModel",
        "Logistic",
        "Loss",
        "Multinomial",
        "Poisson",
        "Quadratic",
        "Quantile",
        "Squared",
        "SquaredHinge",
    ),
    "certificates": ("Certificate", "duality_gap"),
    "critical": ("at_fraction", "critical_lam"),
    "penalties": (
        "Affine",
        "Box",
        "BoxHyperplane",
        "ElasticNet",
        "FusedLasso",
        "GroupL2",
        "HalfSpace",
        "HuberPenalty",
        "Hyperplane",
        "L1",
        "L1Ball",
        "L2",
        "L2Ball",
        "LInf",
        "LInfBall",
        "Monotone",
        "NonNegative",
        "Nuclear",
        "NumericalProx",
        "PSD",
        "Penalty",
        "Precomposed",
        "Ridge",
        "SLOPE",
        "Scaled",
        "Separable",
        "Simplex",
        "SparseGroupL2",
        "TotalVariation1D",
        "Translated",
        "Unpenalised",
        "Zero",
    ),
}
_HOME = {name: module for module, names in _CONTENTS.items() for name in names}
_MODULES = (
    "blocks",
    "certificates",
    "critical",
    "datasets",
    "kernels",
    "losses",
    "optax",
    "paper",
    "penalties",
    "rules",
    "sklearn",
    "theory",
    "torch",
)

__all__ = [*_HOME, "__version__"]  # noqa: PLE0604


def __getattr__(name: str):
    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
