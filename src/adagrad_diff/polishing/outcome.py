"""What a small exact problem has to say about the large one behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Stop = Callable[[], bool]  # whether there is no time for more


@dataclass
class Outcome:
    """The answer of a solver, in the loss's own coordinates and in double precision."""

    x: np.ndarray  # of the shape of the loss, an intercept included
    u: (
        np.ndarray | None
    )  # the dual point that goes with it: a slope of each scalar loss; None for a quadratic function
    done: bool  # whether x is optimal over all samples and columns, as far as double precision sees
    rounds: int  # small problems that were solved
    samples: int  # of the last one: those whose slope was unknown
    coefficients: int  # of the last one: those that were not held at zero, or at a bound
    reason: str = ""  # why it is not done: a phrase


class Solver(ABC):
    """A method for some losses and penalties, which keeps between calls what it has learned."""

    near = 0.0  # what it has learned, a number that only grows
    spent = 0.0  # a guess at the seconds of the last call: the same on every machine

    @abstractmethod
    def solve(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> Outcome:
        """The minimiser, from a point near it or not; with `whole`, from anywhere.

        It stops when the relative error of the objective is surely far below tol, or soon after `stop` says so; what it has
        then is not worse than x.
        """

    def cost(self) -> float:
        """A guess at the seconds of a call with `whole`."""
        return 0.0

    def guess(self, x: np.ndarray) -> float:
        """A guess at the seconds of a call near x."""
        return 0.0
