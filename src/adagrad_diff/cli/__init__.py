"""The command `adagrad-diff`: progress and messages go to stderr, results to stdout."""

from . import compare, experiments, fit, machine  # each adds its commands
from .group import main

__all__ = ["compare", "experiments", "fit", "machine", "main"]
