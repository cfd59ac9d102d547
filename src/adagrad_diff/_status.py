"""Why a run ended: codes, the sentences that explain them, and the ways to tell the caller."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any


class Status(IntEnum):
    """The codes of `OptimizeResult.status`."""

    CONVERGED = 0  #: the subgradient, or the duality gap, is within the tolerance
    MAX_ITER = 1  #: the budget of iterations is used up
    MAX_TIME = 2  #: the budget of time is used up
    CALLBACK = 3  #: the callback raised StopIteration
    INTERRUPTED = 4  #: the user interrupted the run (Ctrl-C)
    NOT_FINITE = 5  #: the loss, its gradient or the penalty turned NaN or infinite
    DIVERGED = 6  #: the loss has left its starting value by a factor of 1e30
    STALLED = 7  #: the best objective does not improve any more (eta = "auto" only)


#: Ends that are somebody's decision, and count as success when no tolerance was asked for.
BUDGETS = (Status.MAX_ITER, Status.MAX_TIME, Status.CALLBACK)

EXPLANATIONS = {
    Status.CONVERGED: "Converged: the norm of the subgradient of F at x is at most tol times the norm of the first gradient",
    Status.MAX_ITER: "The budget of iterations (max_iter) is used up",
    Status.MAX_TIME: "The budget of time (max_time) is used up",
    Status.CALLBACK: "The callback stopped the run",
    Status.INTERRUPTED: "The run was interrupted; pass state=result.state to continue it exactly",
    Status.NOT_FINITE: (
        "The loss, its gradient or the penalty turned NaN or infinite at the next iterate; x is the last good one. Likely "
        "causes: (a) eta is too large for a loss that overflows (Poisson, your own); (b) the loss or the penalty is not "
        "defined at the iterate; (c) x0 is far too large. Try a smaller eta or a box penalty"
    ),
    Status.STALLED: (
        "The best objective has improved by less than tol relative over the last three quarters of the run, without a duality "
        "gap as small: either none is known for this problem, or progress is very slow"
    ),
    Status.DIVERGED: (
        "The loss has moved away from its starting value by a factor of 1e30. Likely causes: (a) eta is too large; (b) the "
        "objective is unbounded below. x_best is the best iterate seen"
    ),
}

TOLERANCE_MISSED = (
    " before the tolerance was reached. The run can go on with state=result.state; if it makes no progress, try another "
    "eta, or a larger tol: for a nonsmooth loss the subgradient need not become small"
)


CERTIFIED = "Converged: the duality gap is at most tol times |F(x)|"

GAP_MISSED = " before the duality gap was small enough. The run can go on with state=result.state, or try another eta"


class ConvergenceWarning(RuntimeWarning):
    """The run ended without success."""


class ConvergenceError(RuntimeError):
    """The run ended without success and on_failure='raise'. The result so far is `error.result`."""

    def __init__(self, message: str, result):
        super().__init__(message)
        self.result = result


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C. What was reached until then is `error.result`, with the state to go on from."""

    def __init__(self, message: str, result: Any = None):
        super().__init__(message)
        self.result = result


def warn(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the line outside this package that led here."""
    package, level, frame = str(Path(__file__).parent), 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class _Interrupt:
    requested = False


@contextmanager
def delayed_interrupt() -> Iterator[_Interrupt]:
    """Let the iteration in progress finish when the user presses Ctrl-C; a second Ctrl-C stops at once.

    Only in the main thread, and only if nobody else handles the signal.
    """
    interrupt = _Interrupt()
    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def handler(number, frame):
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True

    if ours:
        signal.signal(signal.SIGINT, handler)
    try:
        yield interrupt
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
