"""How a run ends: status codes, their explanations, what counts as success, warnings and errors."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np


class Status(IntEnum):
    """The codes of `OptimizeResult.status`."""

    CONVERGED = 0  #: the tolerance asked for was reached: by the duality gap, or by a subgradient
    MAX_ITER = 1  #: the budget of iterations is used up
    MAX_TIME = 2  #: the budget of time is used up
    CALLBACK = 3  #: the callback raised StopIteration
    INTERRUPTED = 4  #: the user interrupted the run (Ctrl-C)
    NOT_FINITE = 5  #: the loss, its gradient or the penalty turned NaN or infinite
    DIVERGED = 6  #: the loss has left its starting value by a factor of 1e30, or by 1e6 down a straight line
    STALLED = 7  #: the best objective does not improve any more, and nothing proves that it is good (eta = "auto" only)


RUNNING = -1  # no end yet
#: Ends that are somebody's decision: a success if no tolerance was asked for, for then the run ended as told.
BUDGETS = (Status.MAX_ITER, Status.MAX_TIME, Status.CALLBACK)
#: Ends that need no warning: whoever ended the run knows.
DECIDED = (Status.CALLBACK, Status.INTERRUPTED)


def succeeded(codes: Any, tol: float | None) -> np.ndarray:
    """Which of these ends are a success. (The table in docs/ends.md.)"""
    return np.asarray(
        (np.asarray(codes) == Status.CONVERGED) | (np.isin(codes, BUDGETS) & (tol is None))
    )


SUBGRADIENT = "Converged: the subgradient of the objective at x is within the tolerance, relative to the first gradient"
CERTIFIED = "Converged: the duality gap is within the tolerance, relative to the objective"
CERTIFIED_SMALL = "Converged: the duality gap is within the tolerance, relative to a millionth of the objective's usual size"

EXPLANATIONS = {
    Status.MAX_ITER: "The budget of iterations (max_iter) is used up",
    Status.MAX_TIME: "The budget of time (max_time) is used up",
    Status.CALLBACK: "The callback stopped the run",
    Status.INTERRUPTED: "The run was interrupted; pass state=result.state to continue it exactly",
    Status.NOT_FINITE: (
        "The loss, its gradient or the penalty turned NaN or infinite at the next iterate; x is the last good one. Likely "
        "causes: (a) the step size eta is too large for a loss that overflows (Poisson, your own); (b) the loss or the penalty "
        "is not defined at the iterate; (c) x0 is far too large. Try a smaller eta, another x0 or a box penalty"
    ),
    Status.DIVERGED: (
        "The loss runs away: it has left its starting value by a factor of 1e30, or falls and falls along a straight line. "
        "Likely causes: (a) the objective is unbounded below; (b) the step size eta is too large. x_best is the best iterate "
        "seen"
    ),
    Status.STALLED: (
        "The best objective has improved by less than the tolerance over the last three quarters of the run, but nothing "
        "proves that it is optimal: progress may just be slow. Scale the features, use a larger tolerance or a stronger "
        "penalty, or go on with state=result.state"
    ),
}

NO_MINIMIZER = (
    "There is no minimizer: the objective keeps decreasing along x toward its infimum. The classes can be "
    "separated, or all counts are zero, and nothing limits the coefficients. Add a penalty"
)
MISSED = " before the tolerance was reached. The run can go on with state=result.state; if it makes no progress, try {}"
REMEDIES = {
    "gap": "a larger tol, another eta, or eta='auto'",
    "subgradient": "another eta, a larger tol, or stop='gap': for a nonsmooth loss the subgradient need not become small",
    "auto": "a larger tol, scaled features or a stronger penalty",
}


class ConvergenceWarning(RuntimeWarning):
    """The run ended without success."""


class ConvergenceError(RuntimeError):
    """The run ended without success and on_failure='raise'. The result so far is `error.result`."""

    def __init__(self, message: str, result: Any):
        super().__init__(message)
        self.result = result


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C. What was reached until then is `error.result`, with the state to go on from."""

    def __init__(self, message: str, result: Any = None):
        super().__init__(message)
        self.result = result
