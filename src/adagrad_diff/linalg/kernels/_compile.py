"""Loops over arrays that are compiled when they are first used, and their NumPy versions for small arrays.

Compilation takes seconds, and loading compiled code half a second, so small data never need it. Numba
is imported by `_numba` only.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache, cached_property, partial, update_wrapper
from types import CodeType, FunctionType
from typing import Any, overload

import numpy as np

# Entries up to which NumPy is used. At 1000 x 20 it takes 10 us longer per iteration than compiled
# loops, which pay for their compilation after 200,000 iterations.
MAX_NUMPY_SIZE = 1 << 15


largest_small = 1 << 62  # entries; tests of compiled loops set it to -1
MAX_SQUARE_SIZE = 1 << 20  # entries of a square matrix up to which BLAS multiplies as fast
MAX_PYTHON_SIZE = 128  # entries up to which a loop without a NumPy version runs as it is


class Kernel:
    """A loop over arrays: its NumPy version runs if the first array is small, else it is compiled."""

    def __init__(
        self,
        loop: Any,
        fastmath: bool = False,
        small: Any = None,
        limit: int | None = None,
        elementwise: bool = False,
    ):
        """Declare a loop.

        `fastmath` lets sums be reordered, `small` is the NumPy version (or "python" for the loop itself)
        for at most `limit` entries, and `elementwise` says that all versions return the same bits.
        """
        update_wrapper(self, loop)
        self.py_func, self.fastmath, self.elementwise = loop, fastmath, elementwise
        python = small == "python"
        small = loop if python else small
        self.small = None if small is None else np.errstate(all="ignore")(small)
        self.limit = limit or (MAX_PYTHON_SIZE if python else MAX_NUMPY_SIZE)

    def __call__(self, *args: Any) -> Any:
        if self.small is not None:
            limit = min(self.limit, largest_small)
            if np.size(args[0]) <= limit and not (self.elementwise and "numba" in sys.modules):
                return self.small(*args)
        return self.compiled(*args)

    @cached_property
    def compiled(self) -> Any:
        """The loop as machine code."""
        from . import _numba

        options: Any = {"fastmath": _numba.FASTMATH} if self.fastmath else {}
        return _numba.plain(_linked(self.py_func), **options)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # type: ignore[no-any-return]


def is_small(size: int, square: bool = False) -> bool:
    """Return whether a matrix with so many entries is left to NumPy."""
    return size <= min(MAX_SQUARE_SIZE if square else MAX_NUMPY_SIZE, largest_small)


@overload
def compiled(loop: Callable[..., Any]) -> Kernel: ...


@overload
def compiled(**options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...


def compiled(loop: Any = None, **options: Any) -> Any:
    """Declare a kernel whose sums may be reordered. Where numbers are gathered that makes them slower."""
    return partial(compiled, **options) if loop is None else Kernel(loop, True, **options)


@overload
def plain(loop: Callable[..., Any]) -> Kernel: ...


@overload
def plain(**options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...


def plain(loop: Any = None, **options: Any) -> Any:
    """Declare a kernel whose operations stay in their order."""
    return partial(plain, **options) if loop is None else Kernel(loop, **options)


def scalar_kernel(template: Callable[..., Any]) -> Any:
    """Return a function that compiles `template(scalar, residuals)` for a scalar loss, once for each."""

    @cache
    def specialize(scalar: Any) -> Any:
        from . import _numba

        return _numba.specialized(template, scalar, _linked, named)

    return specialize


def _linked(function: Any) -> Any:
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


def named(function: Callable[..., Any], content: bytes) -> Callable[..., Any]:
    """The function under a name of its own, made of what it depends on.

    Numba's symbols are made of a name and a number, and its files are found by the name. Without this, kernels of two losses
    that two processes have put on disk might be one and the same to a third one, and so might two versions of a kernel when a
    function that it calls is edited.
    """
    function.__qualname__ = f"{function.__qualname__}_{hashlib.sha256(content).hexdigest()[:16]}"
    return function
