"""Polishing: from an approximate to an exact solution, with its certificate."""

from .polisher import Polisher as Polisher
from .polisher import PolishReport, polish

__all__ = ["PolishReport", "polish"]
