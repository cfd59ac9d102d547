"""AdaGrad-Diff: adaptive proximal gradient steps driven by differences of successive gradients.

w_i^n = eps + sqrt( sum_{k=1..n} ||g_i^k - g_i^{k-1}||^2 ),  g^0 = 0          (the metric)
x^{n+1} = prox^{W_n}_{eta phi}( x^n - eta W_n^{-1} g^n )                       (the step)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

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
    "checks": ("check_loss", "check_penalty", "check_rule"),
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
    "checks",
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


if TYPE_CHECKING:  # the same once more, in the form that exports a name for type checkers
    from . import blocks as blocks, certificates as certificates, checks as checks, critical as critical
    from . import losses as losses, penalties as penalties, rules as rules, theory as theory
    from ._driver import History as History
    from ._minimize import iterate as iterate, minimize as minimize
    from ._scipy import scipy_method as scipy_method
    from ._state import State as State, load_state as load_state
    from ._status import (
        ConvergenceError as ConvergenceError,
        ConvergenceWarning as ConvergenceWarning,
        Interrupted as Interrupted,
        Status as Status,
    )
    from ._sweep import sweep as sweep
    from .certificates import Certificate as Certificate, duality_gap as duality_gap
    from .checks import check_loss as check_loss, check_penalty as check_penalty, check_rule as check_rule
    from .critical import at_fraction as at_fraction, critical_lam as critical_lam
    from .losses import (
        LAD as LAD,
        Hinge as Hinge,
        Huber as Huber,
        KernelSVMDual as KernelSVMDual,
        LinearModel as LinearModel,
        Logistic as Logistic,
        Loss as Loss,
        Multinomial as Multinomial,
        Poisson as Poisson,
        Quadratic as Quadratic,
        Quantile as Quantile,
        Squared as Squared,
        SquaredHinge as SquaredHinge,
    )
    from .penalties import (
        L1 as L1,
        L2 as L2,
        PSD as PSD,
        SLOPE as SLOPE,
        Affine as Affine,
        Box as Box,
        BoxHyperplane as BoxHyperplane,
        ElasticNet as ElasticNet,
        FusedLasso as FusedLasso,
        GroupL2 as GroupL2,
        HalfSpace as HalfSpace,
        HuberPenalty as HuberPenalty,
        Hyperplane as Hyperplane,
        L1Ball as L1Ball,
        L2Ball as L2Ball,
        LInf as LInf,
        LInfBall as LInfBall,
        Monotone as Monotone,
        NonNegative as NonNegative,
        Nuclear as Nuclear,
        NumericalProx as NumericalProx,
        Penalty as Penalty,
        Precomposed as Precomposed,
        Ridge as Ridge,
        Scaled as Scaled,
        Separable as Separable,
        Simplex as Simplex,
        SparseGroupL2 as SparseGroupL2,
        TotalVariation1D as TotalVariation1D,
        Translated as Translated,
        Unpenalised as Unpenalised,
        Zero as Zero,
    )
    from .rules import AdaGrad as AdaGrad, AdaGradDiff as AdaGradDiff, Rule as Rule

else:

    def __getattr__(name):
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
