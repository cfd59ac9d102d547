"""Rules: how gradients become the diagonal metric of the next step, one per file."""

from .adagrad import AdaGrad
from .adagrad_diff import AdaGradDiff
from .base import Metric as Metric
from .base import Rule
from .base import as_rule as as_rule
from .blocks import block_labels as block_labels

__all__ = ["AdaGrad", "AdaGradDiff", "Rule"]
