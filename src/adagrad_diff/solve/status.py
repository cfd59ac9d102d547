"""What delays Ctrl-C in runs without a given step size; the rest is in `solvers.status`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..solvers.status import (
    BUDGETS,
    CERTIFIED,
    CERTIFIED_SMALL,
    DECIDED,
    EXPLANATIONS,
    MISSED,
    NO_MINIMIZER,
    REMEDIES,
    RUNNING,
    SUBGRADIENT,
    ConvergenceError,
    ConvergenceWarning,
    Interrupted,
    Status,
    succeeded,
)

__all__ = [
    "BUDGETS",
    "CERTIFIED",
    "CERTIFIED_SMALL",
    "DECIDED",
    "EXPLANATIONS",
    "MISSED",
    "NO_MINIMIZER",
    "REMEDIES",
    "RUNNING",
    "SUBGRADIENT",
    "ConvergenceError",
    "ConvergenceWarning",
    "Interrupt",
    "Interrupted",
    "Status",
    "delayed_interrupt",
    "interruptible",
    "succeeded",
]


class Interrupt:
    """Whether the user has pressed Ctrl-C, and whether a second time would do harm just now."""

    requested = False
    held: Callable[[], bool] = staticmethod(lambda: False)


@contextmanager
def delayed_interrupt() -> Iterator[Interrupt]:
    """Let the iteration in progress finish when the user presses Ctrl-C; a second Ctrl-C stops at once.

    "At once" is not between the parts of what belongs together (`held`): that takes microseconds,
    and ends the run as well.
    Only in the main thread, and only if nobody else handles the signal.
    """
    interrupt = Interrupt()
    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def handler(number: int, frame: Any) -> None:
        if interrupt.requested and not interrupt.held():
            raise KeyboardInterrupt
        interrupt.requested = True

    if ours:
        signal.signal(signal.SIGINT, handler)
    try:
        yield interrupt
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupt.requested:  # after everybody had looked for the last time
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """`delayed_interrupt` for a run: what interrupts it while there is no iteration to finish leaves as `Interrupted`, too."""
    try:
        with delayed_interrupt() as interrupt:
            yield interrupt
    except Interrupted:
        raise
    except KeyboardInterrupt as error:
        raise Interrupted(
            "The run was interrupted before its first iteration, or after its last one."
        ) from error
