"""The interface of a polishing solver, and its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Stop = Callable[[], bool]  # whether the time limit of the caller has passed


@dataclass
class Outcome:
    """The result of a solver, in the coordinates of the loss and in double precision."""

    x: np.ndarray  # of the shape of the loss, an intercept included
    u: np.ndarray | None  # the dual point: a slope of each scalar loss; None for a quadratic loss
    done: bool  # whether x is optimal up to rounding
    rounds: int  # subproblems that were solved
    samples: int  # of the last subproblem: those whose slope was unknown
    coefficients: int  # of the last subproblem: those not held at zero or at a bound
    reason: str = ""  # why x is not optimal: a phrase


class Solver(ABC):
    """A method for some losses and penalties. It may reuse what earlier calls have computed."""

    work = 0.0  # multiplications of the last call, estimated

    @abstractmethod
    def solve(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> Outcome:
        """Return the minimizer, given a point near it or, with `whole`, any point.

        The method ends when the relative error of the objective is certainly far below tol, or soon
        after `stop` returns True. The result is never worse than x.
        """

    def cost(self, x: np.ndarray | None = None) -> float:
        """Return the multiplications of a call near x, or with `whole`, estimated."""
        return 0.0
