"""From an approximate answer to an exact one: the small problem behind an almost solved one, and its proof."""

from .finish import Finish, finish
from .finish import Finisher as Finisher

__all__ = ["Finish", "finish"]
