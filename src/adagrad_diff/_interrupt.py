"""Ctrl-C on the command line: one sentence and exit code 130, in whatever second it comes.

While libraries load, arguments are read, and the interpreter ends, an exception would be lost in somebody else's code, or
come out as a traceback: there the process ends at once. While a command works, Ctrl-C is the usual KeyboardInterrupt, so that
what is finished can be kept.
"""

import atexit
import os
import signal
import sys
from contextlib import suppress

EXIT_CODE = 130  # the usual one
SENTENCE = "Interrupted. The same command begins again."
half_written: set[str] = (
    set()
)  # files that are being written: whatever ends the process takes them along
_said = False


def _leave(*_: object) -> None:
    """End now, and leave no half-written file behind."""
    for name in tuple(half_written):
        with suppress(OSError):
            os.unlink(name)
    if not _said:
        os.write(2, f"\n{SENTENCE}\n".encode())
    os._exit(EXIT_CODE)


def _lost(unraisable: "sys.UnraisableHookArgs") -> None:
    """An interrupt in a callback or a destructor, from where no exception comes out."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _leave()
    sys.__unraisablehook__(unraisable)


def take_over() -> None:
    """From here on, unless the process was told to ignore it, as by nohup, or a program around us has its own way."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        sys.unraisablehook = _lost
        atexit.register(_last)  # the first that is registered is the last that is called


def _last() -> None:
    """Once a KeyboardInterrupt has passed through `exec`, Python ends by the signal, whatever the exit code was to be.

    Else the command is done, and nothing is left to interrupt: from here on the signal would be deadly again.
    """
    if _said:
        sys.stdout.flush()
        _leave()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Working:
    """Inside, Ctrl-C is a KeyboardInterrupt, if it has been taken over."""

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if sys.unraisablehook is _lost:
            signal.signal(signal.SIGINT, _leave)


def last_words(sentence: str) -> None:
    """Say what Ctrl-C has left. Whoever presses it again hears nothing more."""
    global _said
    Working().__exit__()
    _said = True
    print(f"\n{sentence}", file=sys.stderr, flush=True)
