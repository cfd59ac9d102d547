"""The compiled inner loops, each with the NumPy statement it computes.

Kernels are compiled when they are first used, and not for small arrays. Three rules hold throughout:

- every kernel is ``nogil`` and single-threaded; threads are added from outside (`adagrad_diff._threads`), so that
  concurrent runs in one process are safe whatever Numba's threading layer;
- indices are unsigned before they are used: Numba's handling of negative ones doubles the time of a sparse product;
- sums may be reordered (``reassoc``), but nothing assumes finite numbers: NaN and inf must survive to be reported. (So
  compare with ``< np.inf`` in such a kernel: Numba's ``np.isfinite(x)`` is ``x - x``, which reordering turns into 0.) A loop
  that adds up does not write to an array: whether it is vectorised, and so the order of its sum, would depend on addresses.
"""

from ..compiling import compiled, is_small, plain
from ._dense import add_dense_dot, add_dense_tdot, dense_pass, dense_pass_few, dense_sums
from ._elastic import elastic_value, ridge, shrink
from ._exact import (
    exact_dense_dot,
    exact_dense_tdot,
    exact_rows_dot,
    exact_rows_tdot,
    pair_sum,
    two_product,
    two_sum,
)
from ._intercept import intercept_gradient, intercept_offset
from ._metric import add_block_squares, metric_update
from ._minibatch import (
    batch,
    picked_dense_dot,
    picked_dense_tdot,
    picked_rows_dot,
    picked_rows_tdot,
    uniform,
)
from ._residuals import residuals, softmax_residuals
from ._sparse import add_rows_dot, add_rows_tdot
from ._walks import dense_walk, idle, rows_walk

__all__ = [
    "add_block_squares",
    "add_dense_dot",
    "add_dense_tdot",
    "add_rows_dot",
    "add_rows_tdot",
    "batch",
    "compiled",
    "dense_pass",
    "dense_pass_few",
    "dense_sums",
    "dense_walk",
    "elastic_value",
    "exact_dense_dot",
    "exact_dense_tdot",
    "exact_rows_dot",
    "exact_rows_tdot",
    "idle",
    "intercept_gradient",
    "intercept_offset",
    "is_small",
    "metric_update",
    "pair_sum",
    "picked_dense_dot",
    "picked_dense_tdot",
    "picked_rows_dot",
    "picked_rows_tdot",
    "plain",
    "residuals",
    "ridge",
    "rows_walk",
    "shrink",
    "softmax_residuals",
    "two_product",
    "two_sum",
    "uniform",
]
