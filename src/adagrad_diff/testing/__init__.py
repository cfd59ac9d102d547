"""Checks of user-defined losses, penalties and rules, with reports in plain sentences."""

from ._report import Finding as Finding
from ._report import Report as Report
from .loss import check_loss
from .penalty import check_penalty
from .rule import check_rule

__all__ = ["check_loss", "check_penalty", "check_rule"]
