"""Compilation with Numba: imported when the first kernel is compiled."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any
from uuid import uuid4

import numba
from numba import njit
from numba.core import event
from numba.extending import register_jitable

from ..._messages import warn
from . import _elementary, elementary
from ._scalar import checked
from .elementary import INLINE

FASTMATH = {"reassoc", "contract", "nsz"}

# Division by zero gives inf, as in NumPy, and no branch. That sums are not reordered is said, too: a function that says nothing
# has what the one has that calls it first, and keeps it on disk.
OPTIONS: Any = {"nogil": True, "error_model": "numpy", "fastmath": False}


def plain(function: Callable[..., Any], cache: bool = True, **options: Any) -> Any:
    """Compiled, and kept on disk under a file name that no other process uses.

    Numba numbers the files of a function. Two processes that compile it at the same time for two dtypes would write to one
    file, and the index would take the one for the other. A cache directory of our own does not help: with three processes,
    six functions and writes of the index slowed down by 50 ms, as on a busy network disk, a later process got code for the
    other dtype in two rounds of four; with this, in none of four. (On a quick disk neither did, in fifteen.) Signatures given
    in advance would prevent it, but then all of them are compiled, needed or not.
    """
    try:
        dispatcher = njit(cache=cache, **(OPTIONS | options))(function)
    except (OSError, RuntimeError) as error:  # there is no directory that can be written
        _warn_once("cannot be used", error)
        return njit(**(OPTIONS | options))(function)
    stored: Any = getattr(dispatcher, "_cache", None)
    files: Any = getattr(stored, "_cache_file", None)
    if hasattr(files, "_data_name_pattern"):
        files._data_name_pattern = f"{uuid4().hex[:8]}-{files._data_name_pattern}"
        place = f"in {stored.cache_path} "
        stored.load_overload = _tolerant(stored.load_overload, f"{place}cannot be read")
        stored.save_overload = _tolerant(stored.save_overload, f"{place}cannot be written")
    return dispatcher


def _tolerant(method: Callable[..., Any], problem: str) -> Callable[..., Any]:
    """Return a method of Numba's cache that warns and returns None, as for a missing entry, where the original one raises."""

    def tolerant(*args: Any) -> Any:
        try:
            return method(*args)
        except (
            Exception
        ) as error:  # damaged files raise errors of many types when they are unpickled
            _warn_once(problem, error)
            return None

    return tolerant


_warned = False


def _warn_once(problem: str, error: Exception) -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(
            f"Numba's cache of compiled functions {problem} ({type(error).__name__}: {str(error)[:200]}). Functions are "
            "compiled again in every process, which takes some seconds. Make space, delete the files *.nbi and *.nbc there, or "
            "set the environment variable NUMBA_CACHE_DIR to another directory.",
            RuntimeWarning,
            through=os.path.dirname(numba.__file__),
        )


def specialized(
    template: Callable[..., Any], scalar: Any, linked: Callable[..., Any], named: Callable[..., Any]
) -> Any:
    """Return one compiled copy of `template(scalar, residuals)`, cached on disk if the loss is ours."""
    scalar = checked(scalar)
    code = scalar.__code__
    content = repr((code.co_code, code.co_consts, code.co_names)).encode()
    for file in (__file__, elementary.__file__, _elementary.__file__):
        content += Path(file).read_bytes()
    inlined = register_jitable(**INLINE)(scalar)
    residuals = register_jitable(named(_over_samples(inlined), content))
    function = linked(named(template(inlined, residuals), content))
    own = scalar.__module__.startswith("adagrad_diff.losses")
    return plain(function, cache=own, fastmath=FASTMATH)


def _over_samples(scalar: Callable[..., Any]) -> Callable[..., Any]:
    def residuals(z: Any, b: Any, weight: Any, theta: Any) -> Any:
        """z <- weight * derivative(z, b); returns np.sum(weight * value(z, b)), without samples of weight zero."""
        total = 0.0
        for j in range(z.size):
            value, derivative = scalar(z[j], b[j], theta)
            total += weight[j] * (
                value if weight[j] != 0.0 else 0.0
            )  # also where the value is infinite
            z[j] = weight[j] * (derivative if weight[j] != 0.0 else 0.0)
        return total

    return residuals


class _Notice(event.Listener):
    """Says on a terminal that functions are being compiled, if it takes longer than a moment."""

    depth = 0
    timer: Timer | None = None

    def on_start(self, _: event.Event) -> None:
        self.depth += 1
        if self.depth == 1:
            self.timer = Timer(NOTICE_SECONDS, _print_notice)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, _: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()


NOTICE_SECONDS = 2.0  # of compilation after which a line says so


def _print_notice() -> None:
    print("adagrad_diff: compiling functions for large data (once per version)", file=sys.stderr)


if sys.stderr is not None and sys.stderr.isatty():
    event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]
