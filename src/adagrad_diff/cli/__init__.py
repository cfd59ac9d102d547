"""The command `adagrad-diff`: progress and messages go to stderr, results to stdout."""

from . import commands  # which adds its commands
from .group import main

__all__ = ["commands", "main"]
