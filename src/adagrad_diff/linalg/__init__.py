"""Where A lives: sources of row blocks, which everything else folds its sums over."""

from .as_source import as_source as as_source
from .block import Block as Block
from .samples import Samples as Samples
from .source import Source

__all__ = ["Source"]
