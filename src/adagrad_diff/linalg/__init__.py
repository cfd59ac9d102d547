"""The data matrix A, in memory or in blocks of rows: sums over it, and compiled kernels."""

from .block import Block as Block
from .block import Samples as Samples
from .source import Source
from .stored import as_source as as_source

__all__ = ["Source"]
