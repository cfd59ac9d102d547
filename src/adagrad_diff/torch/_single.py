"""The step of one tensor after the other, which takes everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._dense import dense_step
from ._sparse import sparse_step
from ._tensors import Pairs

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer


class Single:
    """Take every parameter: complex, half precision, spread over processes, with a sparse gradient."""

    def step(
        self, optimizer: DifferenceOptimizer, pairs: Pairs, group: dict[str, Any], factor: float
    ) -> Pairs:
        for p, g in pairs:
            if g.is_sparse:
                sparse_step(optimizer, p, g, group, factor)
            else:
                dense_step(optimizer, p, g, group, factor)
        return []
