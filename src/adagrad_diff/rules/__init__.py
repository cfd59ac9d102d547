"""Rules: how gradients become steps, one per file."""

from .adagrad import AdaGrad
from .adagrad_diff import AdaGradDiff
from .base import Rule
from .base import as_rule as as_rule
from .blocks import block_labels as block_labels
from .memory import BLOCK as BLOCK
from .memory import NUMBER as NUMBER
from .memory import POINT as POINT
from .memory import Memory as Memory
from .memory import View as View

__all__ = ["AdaGrad", "AdaGradDiff", "Rule"]
