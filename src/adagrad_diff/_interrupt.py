"""Ctrl-C on the command line: one sentence and exit code 130, at any time.

While libraries load, arguments are read, and the interpreter ends, other code might swallow an
exception or print a traceback, so the process ends immediately. While a command works, Ctrl-C is
the usual KeyboardInterrupt, so that finished results can be kept.
"""

import atexit
import os
import signal
import sys
from contextlib import suppress

EXIT_CODE = 130  # of processes that end by Ctrl-C
SENTENCE = "Interrupted. The same command begins again."
half_written: set[str] = set()  # files that must be deleted if the process ends here
_said = False


def _leave(*_: object) -> None:
    """End the process now, without half-written files."""
    for name in tuple(half_written):
        with suppress(OSError):
            os.unlink(name)
    if not _said:
        os.write(2, f"\n{SENTENCE}\n".encode())
    os._exit(EXIT_CODE)


def _lost(unraisable: "sys.UnraisableHookArgs") -> None:
    """End the process after an interrupt in a callback or destructor, which swallow exceptions."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _leave()
    sys.__unraisablehook__(unraisable)


def take_over() -> None:
    """Handle Ctrl-C from now on, unless it is ignored (nohup) or the calling program handles it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        sys.unraisablehook = _lost
        atexit.register(_last)  # the first that is registered is the last that is called


def _last() -> None:
    """Set the exit code: after a KeyboardInterrupt in `exec`, Python would end by the signal.

    Otherwise the command is done, and from now on the signal is ignored.
    """
    if _said:
        sys.stdout.flush()
        _leave()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Working:
    """A context in which Ctrl-C is a KeyboardInterrupt, if `take_over` handles it."""

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if sys.unraisablehook is _lost:
            signal.signal(signal.SIGINT, _leave)


def last_words(sentence: str) -> None:
    """Print the message about an interrupt. Another Ctrl-C prints nothing."""
    global _said
    Working().__exit__()
    _said = True
    print(f"\n{sentence}", file=sys.stderr, flush=True)
