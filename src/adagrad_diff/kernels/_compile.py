"""Loops over arrays that are compiled when they are first used, and their NumPy versions for small arrays.

Compilation takes seconds, and loading compiled code half a second, so small data never need it. Numba
is imported by `_numba` only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, cached_property, partial, update_wrapper
from typing import Any

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

        options = {"fastmath": _numba.FASTMATH} if self.fastmath else {}
        return _numba.plain(_numba.linked(self.py_func), **options)

    def __reduce__(self) -> str:
        return self.__qualname__


def is_small(size: int, square: bool = False) -> bool:
    """Return whether a matrix with so many entries is left to NumPy."""
    return size <= min(MAX_SQUARE_SIZE if square else MAX_NUMPY_SIZE, largest_small)


def compiled(loop: Any = None, **options: Any) -> Any:
    """Declare a kernel whose sums may be reordered. Where numbers are gathered that makes them slower."""
    return partial(compiled, **options) if loop is None else Kernel(loop, True, **options)


def plain(loop: Any = None, **options: Any) -> Any:
    """Declare a kernel whose operations stay in their order."""
    return partial(plain, **options) if loop is None else Kernel(loop, **options)


def scalar_kernel(template: Callable[..., Any]) -> Any:
    """Return a function that compiles `template(scalar, residuals)` for a scalar loss, once for each."""

    @cache
    def specialize(scalar: Any) -> Any:
        from . import _numba

        return _numba.specialized(template, scalar)

    return specialize
