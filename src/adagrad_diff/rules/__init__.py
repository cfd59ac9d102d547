"""Rules: how gradients become the diagonal metric of the next step, one per file."""

from .adagrad import AdaGrad
from .adagrad_diff import AdaGradDiff
from .base import Metric, Rule, as_rule

__all__ = ["AdaGrad", "AdaGradDiff", "Metric", "Rule", "as_rule"]
