"""Compiled loops, until they are next to their users."""

from ..compiling import compiled, is_small, plain
from ..compressed import add_rows_dot, add_rows_tdot
from ..residuals import residuals, softmax_residuals
from ._exact import (
    exact_dense_dot,
    exact_dense_tdot,
    exact_rows_dot,
    exact_rows_tdot,
    pair_sum,
    two_product,
    two_sum,
)
from ._metric import add_block_squares

__all__ = [
    "add_block_squares",
    "add_rows_dot",
    "add_rows_tdot",
    "compiled",
    "exact_dense_dot",
    "exact_dense_tdot",
    "exact_rows_dot",
    "exact_rows_tdot",
    "is_small",
    "pair_sum",
    "plain",
    "residuals",
    "softmax_residuals",
    "two_product",
    "two_sum",
]
