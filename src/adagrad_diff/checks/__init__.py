"""For those who write their own losses, penalties and rules: they are tried on random points, and the answer is sentences."""

from ._report import Finding, Report
from .loss import check_loss
from .penalty import check_penalty
from .rule import check_rule

__all__ = ["Finding", "Report", "check_loss", "check_penalty", "check_rule"]
