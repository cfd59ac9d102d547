"""Checks of user-defined losses, penalties and rules, with reports in plain sentences."""

from .functions import check_loss, check_penalty
from .report import Finding as Finding
from .report import Report as Report
from .rule import check_rule

__all__ = ["check_loss", "check_penalty", "check_rule"]
