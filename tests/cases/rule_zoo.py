"""Every rule of the package, ready for use: with a step size that suits small problems, where it has one."""

import adagrad_diff
from adagrad_diff import (
    ACFGM,
    AGD,
    FISTA,
    KATE,
    AdaDelta,
    AdaGradNorm,
    Adam,
    AdamDiff,
    AdaPEG,
    AdaPG,
    Constant,
    DAdaptation,
    DelayedAdaGrad,
    DoG,
    DualAveraging,
    FreeAdaGradDiff,
    Prodigy,
    RMSDiff,
    RMSProp,
    Rule,
    UniAdaGrad,
    UniXGrad,
    rules,
)
from adagrad_diff.rules import has_eta

KINDS = [getattr(adagrad_diff, name) for name in rules.__all__ if name != "Rule"]
ETAS = {
    "Constant": 0.3,
    "Adam": 0.05,
    "AdamDiff": 0.02,
    "DualAveraging": 0.3,
    "RMSProp": 0.01,
    "RMSDiff": 0.01,
    "KATE": 0.3,
    "AGD": 0.05,
}
ETAS |= {"AdaDelta": 1.0, "AdaGradNorm": 1.0}

# Those of the literature, with parameters that are not the usual ones.
PUBLISHED = {
    Constant: {"eta": 0.3},
    AdaGradNorm: {"eta": 0.7, "b0": 0.2},
    DelayedAdaGrad: {"eta": 0.4, "beta": 0.5, "power": 0.7},
    DualAveraging: {"eta": 0.5, "eps": 0.01},
    RMSProp: {"eta": 0.02, "beta": 0.9, "eps": 1e-3},
    RMSDiff: {"eta": 0.02, "beta": 0.9, "eps": 1e-3, "max_move": 3.0},
    AdaDelta: {"eta": 2.0, "rho": 0.8, "eps": 1e-4},
    Adam: {"eta": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3},
    AdamDiff: {"eta": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "max_move": 3.0},
    KATE: {"eta": 0.1, "delta": 0.5, "eps": 1e-3},
    DoG: {"eps": 1e-3, "first": 1e-2},
    FreeAdaGradDiff: {"eps": 1e-3, "first": 1e-2},
    DAdaptation: {"eps": 1e-3, "d0": 1e-2, "start": 1e-2},
    Prodigy: {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "d0": 1e-2},
    AdaPG: {},
    FISTA: {},
    AGD: {"eta": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 0.03},
    AdaPEG: {"eta": 0.5, "eps": 0.01},
    UniXGrad: {"eta": 0.7, "eps": 0.5},
    UniAdaGrad: {"eta": 0.5, "eps": 0.01},
    ACFGM: {},
}
BLOCKED = (
    DelayedAdaGrad,
    DualAveraging,
    RMSProp,
    RMSDiff,
    AdaDelta,
    Adam,
    AdamDiff,
    KATE,
    DoG,
    FreeAdaGradDiff,
    AGD,
    AdaPEG,
    UniAdaGrad,
)


def usual(kind):
    """The eta for a small problem; None for rules that have none."""
    return ETAS.get(kind.__name__, 0.3) if has_eta(kind) else None


def made(kind, eta=None, **options) -> Rule:
    if not has_eta(kind):
        return kind(**options)
    return kind(usual(kind) if eta is None else eta, **options)
