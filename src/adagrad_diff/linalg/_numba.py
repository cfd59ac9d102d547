"""Compilation with Numba: imported when the first kernel is compiled."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba import njit, types
from numba.core import event
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload, register_jitable

from .._files import lock
from .._messages import warn
from .elementary import decay, log1p_unit

# Division by zero gives inf, as in NumPy, and no branch. A function that does not set `fastmath`
# would inherit it from the function that calls it first, and keep it on disk.
OPTIONS: Any = {"nogil": True, "error_model": "numpy"}
FASTMATH = {"reassoc", "contract", "nsz"}
INLINE: Any = {"forceinline": True}  # without it, loops around long functions are not vectorized
NOTICE_SECONDS = 2.0  # of compilation, after which a terminal shows a line about it
LOCK_SECONDS = 60.0  # to wait for another process that compiles; it may have been suspended

_cache_works = True  # until a file of Numba's cache cannot be read or written


def run(kernel: Any, *args: Any) -> Any:
    """Call the machine code of a kernel. If Numba's cache on disk fails, compile without it."""
    global _cache_works
    stored = _cache_works
    try:
        return machine_code(kernel, stored)(*args)
    except NumbaError:
        raise
    except Exception as error:  # damaged files raise errors of many types
        if not stored:
            raise
        if _cache_works:
            _warn(kernel, error)
        _cache_works = False
        return machine_code(kernel, False)(*args)


def _warn(kernel: Any, error: Exception) -> None:
    place = ""
    with suppress(Exception):
        place = f" in {machine_code(kernel, True).stats.cache_path}"
    warn(
        f"Numba's cache of compiled functions{place} cannot be used ({type(error).__name__}: "
        f"{str(error)[:200]}). Functions are compiled again in every process, which takes some "
        "seconds. Make space, delete the files *.nbi and *.nbc there, or set the environment "
        "variable NUMBA_CACHE_DIR to another directory.",
        RuntimeWarning,
        through=os.path.dirname(numba.__file__),
    )


@cache
def machine_code(kernel: Any, stored: bool) -> Any:
    """Return a kernel as a function of Numba, which keeps its machine code on disk if `stored`."""
    fastmath = FASTMATH if kernel.fastmath else False
    function = _linked(kernel, stored)
    return njit(cache=stored and kernel.stored, fastmath=fastmath, **OPTIONS)(function)


def _linked(kernel: Any, stored: bool) -> Any:
    """Return a copy of the kernel's function that calls the machine code of other kernels.

    Its name contains a hash of their source, because Numba compiles a function again only if its own
    file changes.
    """
    function, kind = kernel.py_func, type(kernel)
    names = function.__code__.co_names
    called = {k: v for k in names if isinstance(v := function.__globals__.get(k), kind)}
    if not called:
        return function
    scope = {name: machine_code(kernel, stored) for name, kernel in called.items()}
    copy = FunctionType(
        function.__code__,
        function.__globals__ | scope,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    callees = [code.py_func for code in scope.values()]
    copy.__qualname__ = f"{function.__qualname__}_{_digest(*callees)}"
    copy.__module__ = function.__module__
    return copy


def _digest(*functions: Any) -> str:
    """Return a hash of the names and the files of functions."""
    content = hashlib.sha256()
    for function in sorted(functions, key=lambda function: function.__qualname__):
        content.update(function.__qualname__.encode())
        content.update(Path(function.__code__.co_filename).read_bytes())
    return content.hexdigest()[:16]


def specialized(template: Callable[..., Any], scalar: Any, stored: bool) -> Any:
    """Return the function `template(scalar, residuals)`. It is kept on disk if `stored`.

    Its name contains that of the loss, because Numba's symbols consist of a name and a number that
    depends on the process: two kernels that two processes have put on disk must not be the same to
    a third one. It also contains a hash of the source, as in `_linked`.
    """
    scalar = scalar if stored else checked(scalar)
    digest = _digest(scalar, specialized) if stored else ""

    def named(function: Any) -> Any:
        function.__qualname__ += f"_{scalar.__module__}.{scalar.__qualname__}_{digest}"
        return function

    inlined = register_jitable(**INLINE)(scalar)
    residuals = register_jitable(named(_over_samples(inlined)))
    return named(template(inlined, residuals))


def _over_samples(scalar: Callable[..., Any]) -> Callable[..., Any]:
    def residuals(z: Any, b: Any, weight: Any, theta: Any) -> Any:
        """z <- weight * derivative(z, b); returns np.sum(weight * value(z, b)).

        Samples of weight zero count as zero, also where the value is infinite.
        """
        total = 0.0
        for j in range(z.size):
            value, derivative = scalar(z[j], b[j], theta)
            total += weight[j] * (value if weight[j] != 0.0 else 0.0)
            z[j] = weight[j] * (derivative if weight[j] != 0.0 else 0.0)
        return total

    return residuals


# ------------------------------------------------------------------ while functions are compiled


class _Compilation(event.Listener):
    """Let one process compile at a time, and print a line on a terminal if it takes long.

    Numba numbers the files of a function in an index. Two processes that write files for two dtypes
    at the same time would use the same number, and a later process would run the code for the other
    dtype. A process that waited finds the code on disk.
    """

    def __init__(self) -> None:
        self.mutex, self.depth, self.noticed = threading.RLock(), 0, False
        self.file: Any = None

    def on_start(self, _: event.Event) -> None:
        self.mutex.acquire()
        self.depth += 1
        if self.depth > 1:
            return
        try:
            self.timer = threading.Timer(NOTICE_SECONDS, self.print_notice)
            self.timer.daemon = True
            if sys.stderr is not None and sys.stderr.isatty() and not self.noticed:
                self.timer.start()
            with suppress(Exception):  # nothing is written where no lock can be
                path: Any = njit(cache=True)(_over_samples).stats.cache_path
                self.file = open(Path(path) / "adagrad_diff.lock", "ab")  # noqa: SIM115
                _wait(self.file)
        except BaseException:  # Ctrl-C while it waits
            self.on_end(_)
            raise

    def on_end(self, _: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.timer.cancel()
            if self.file is not None:
                self.file.close()
                self.file = None
        self.mutex.release()

    def print_notice(self) -> None:
        self.noticed = True
        print(
            "adagrad_diff: compiling functions for large data (once per version)", file=sys.stderr
        )


def _wait(file: Any) -> None:
    """Lock a file that another process may have locked."""
    latest = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < latest:
        try:
            return lock(file)
        except BlockingIOError:
            time.sleep(0.02)


event.register("numba:compiler_lock", _Compilation())  # type: ignore[no-untyped-call]


# ------------------------------------------------------------------ scalar functions of losses

ADVICE = "It is a static method of three numbers, made of arithmetic, the module math and what Numba knows of NumPy."


def checked(scalar: Any) -> Any:
    """Return the Python function of a user's scalar loss.

    Raise a TypeError in one sentence if it does not compile, or does not return two numbers. Few
    users would understand the message of Numba.
    """
    function: Any = getattr(scalar, "py_func", scalar)  # of one that is compiled already
    name = getattr(function, "__qualname__", repr(function)).rpartition("<locals>.")[2]
    name = f"The scalar function {name}"
    if not inspect.isfunction(function) or len(inspect.signature(function).parameters) != 3:
        remedy = " Put @staticmethod above it." if inspect.ismethod(scalar) else ""
        raise TypeError(f"{name} must be a function of three numbers, scalar(z, b, theta).{remedy}")
    try:
        dispatcher: Any = njit(function)
        dispatcher.compile((types.float64,) * 3)
    except Exception as error:
        raise TypeError(f"{name} cannot be compiled: {_essence(error)}. {ADVICE}") from error
    answer = dispatcher.nopython_signatures[0].return_type
    parts, real = tuple(getattr(answer, "types", ())), types.Integer | types.Float | types.Boolean
    if len(parts) != 2 or not all(isinstance(part, real) for part in parts):
        words = f"a tuple of {len(parts)}" if len(parts) > 2 else answer
        raise TypeError(
            f"{name} must return two numbers, the value and the derivative. Got {words} instead."
        )
    return function


def _essence(error: Exception) -> str:
    """Return the main line of Numba's message, and the line of the user's code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Failed in nopython mode")]
    said = lines[0].removesuffix(". Raised from None") if lines else type(error).__name__
    if said.endswith("for signature:"):  # which one is in the next line
        said = f"there is no {next((line[4:] for line in lines if line.startswith('>>> ')), said)}"
    place = re.search(r'File "(.+)", line (\d+)', str(error))
    return (
        f"{said.rstrip('.')} (line {place[2]} of {Path(place[1]).name})"
        if place
        else said.rstrip(".")
    )


# ------------------------------------------------------------------ exponential and logarithm
#
# Compiled loops compute polynomials for several numbers at a time, which is four times as fast as
# calls of a library function. Their relative error is below 1e-15 (Estrin's scheme).

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = (
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
)  # their sum is log 2; n * LN2_HIGH is exact
SMALLEST = -708.0  # where exp becomes subnormal


@intrinsic
def _from_bits(context: Any, bits: Any) -> Any:
    """The double whose 64 bits these are."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), code


@intrinsic
def _less_multiple(context: Any, t: Any, n: Any, ln2: Any) -> Any:
    """t - n * ln2 by itself.

    Instructions that have flags of their own keep them, so this is no part of the sums that kernels may reorder: to
    t - n * (LN2_HIGH + LN2_LOW), for example, which would lose the digits that the two parts are for.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own = ["contract"]
        return builder.fsub(args[0], builder.fmul(args[1], args[2], flags=own), flags=own)

    return types.float64(types.float64, types.float64, types.float64), code


@overload(decay, jit_options=INLINE)
def _decay(t: Any) -> Any:
    def compiled(t: Any) -> Any:
        t = np.float64(t)
        below = t < SMALLEST
        t = SMALLEST if below else t  # written so that NaN stays NaN
        n = np.floor(t * LOG2_E + 0.5)
        # exp(t) = 2^n exp(r), |r| <= log(2) / 2: the Taylor polynomial of degree 13
        r: Any = _less_multiple(_less_multiple(t, n, LN2_HIGH), n, LN2_LOW)  # type: ignore[call-arg]
        r2 = r * r
        r4 = r2 * r2
        first = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
        second = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
        third = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
        p = (first + r4 * second) + (r4 * r4) * (
            third + r4 * (1 / 479001600 + r * (1 / 6227020800))
        )
        return (0.0 if below else p) * _from_bits((np.int64(np.int32(n)) + 1023) << 52)

    return compiled


@overload(log1p_unit, jit_options=INLINE)
def _log1p_unit(u: Any) -> Any:
    def compiled(u: Any) -> Any:
        u = np.float64(u)
        s = u / (2.0 + u)  # log(1 + u) = 2 atanh(s), s <= 1/3
        q = s * s
        q2 = q * q
        q4 = q2 * q2
        q8 = q4 * q4
        first = (1.0 + q * (1 / 3)) + q2 * (1 / 5 + q * (1 / 7))
        second = (1 / 9 + q * (1 / 11)) + q2 * (1 / 13 + q * (1 / 15))
        third = (1 / 17 + q * (1 / 19)) + q2 * (1 / 21 + q * (1 / 23))
        fourth = (1 / 25 + q * (1 / 27)) + q2 * (1 / 29 + q * (1 / 31))
        return (
            2.0
            * s
            * ((first + q4 * second) + q8 * ((third + q4 * fourth) + q8 * (1 / 33 + q * (1 / 35))))
        )

    return compiled
