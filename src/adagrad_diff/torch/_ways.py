"""The ways of making a step, and which of them a group of parameters takes.

Each way has one method, `step(optimizer, pairs, group, factor)`: it makes the step of those parameters, given with their
gradients, that it can deal with, and returns the others. `factor` multiplies the gradients (a sign, a loss scale). All ways
give the same numbers, up to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ._foreach import Compiled, Foreach
from ._fused import Fused
from ._single import Single
from ._tensors import Pairs

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer


class Way(Protocol):
    """One way of making a step."""

    def step(
        self, optimizer: DifferenceOptimizer, pairs: Pairs, group: dict[str, Any], factor: float
    ) -> Pairs: ...


SINGLE, FUSED = Single(), Fused()
LISTS, LISTS_OF_ACCELERATORS, COMPILED_OF_ACCELERATORS = (
    Foreach(cpu=True),
    Foreach(cpu=False),
    Compiled(cpu=False),
)


def ways(group: dict[str, Any]) -> list[Way]:
    """In the order in which they are asked; the last one takes everything."""
    chosen: list[Way] = []
    if not group["differentiable"]:
        if group["fused"] is not False and not group["foreach"] and Fused.suits(group):
            chosen.append(FUSED)
        if group["foreach"] is not False and Foreach.suits(group):
            chosen.append(
                LISTS
                if group["foreach"]
                else COMPILED_OF_ACCELERATORS
                if group["fused"]
                else LISTS_OF_ACCELERATORS
            )
    return [*chosen, SINGLE]
