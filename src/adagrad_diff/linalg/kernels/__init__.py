"""Compiled loops, until they are next to their users."""

from ..compiling import compiled, is_small, plain
from ..compressed import add_rows_dot, add_rows_tdot
from ..residuals import residuals, softmax_residuals
from ._metric import add_block_squares

__all__ = [
    "add_block_squares",
    "add_rows_dot",
    "add_rows_tdot",
    "compiled",
    "is_small",
    "plain",
    "residuals",
    "softmax_residuals",
]
