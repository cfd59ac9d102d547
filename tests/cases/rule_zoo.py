"""Every rule of the package, ready for use: with a step size that suits small problems, where it has one."""

import adagrad_diff
from adagrad_diff import Rule, rules
from adagrad_diff.rules import has_eta

KINDS = [getattr(adagrad_diff, name) for name in rules.__all__ if name != "Rule"]
ETAS = {"Constant": 0.3, "Adam": 0.05, "AdamDiff": 0.02, "DualAveraging": 0.3, "RMSProp": 0.01, "RMSDiff": 0.01, "KATE": 0.3}
ETAS |= {"AdaDelta": 1.0, "AdaGradNorm": 1.0}


def usual(kind):
    """The eta for a small problem; None for rules that have none."""
    return ETAS.get(kind.__name__, 0.3) if has_eta(kind) else None


def made(kind, eta=None, **options) -> Rule:
    if not has_eta(kind):
        return kind(**options)
    return kind(usual(kind) if eta is None else eta, **options)
