"""For those who write their own losses, penalties and rules: they are tried on random points, and the answer is sentences."""

from ._report import Finding as Finding
from ._report import Report as Report
from .loss import check_loss
from .penalty import check_penalty
from .rule import check_rule

__all__ = ["check_loss", "check_penalty", "check_rule"]
