"""Compilation with Numba: imported when the first kernel is compiled."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from types import CodeType, FunctionType
from typing import Any
from uuid import uuid4

import numba
from numba import njit
from numba.core import event
from numba.extending import register_jitable

from .._messages import warn
from . import _elementary, elementary
from ._compile import Kernel
from ._elementary import INLINE
from ._scalar import checked

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


def linked(function: Any) -> Any:
    """Return the function with the kernels that it calls compiled."""
    names, codes = set[str](), [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    called = {k: v for k in names if isinstance(v := function.__globals__.get(k), Kernel)}
    if not called:
        return function
    scope = function.__globals__ | {name: kernel.compiled for name, kernel in called.items()}
    copy = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def specialized(template: Callable[..., Any], scalar: Any) -> Any:
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


def named(function: Callable[..., Any], content: bytes) -> Callable[..., Any]:
    """The function under a name of its own, made of what it depends on.

    Numba's symbols are made of a name and a number, and its files are found by the name. Without this, kernels of two losses
    that two processes have put on disk might be one and the same to a third one, and so might two versions of a kernel when a
    function that it calls is edited.
    """
    function.__qualname__ = f"{function.__qualname__}_{hashlib.sha256(content).hexdigest()[:16]}"
    return function


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
    event.register("numba:compile", _Notice())
