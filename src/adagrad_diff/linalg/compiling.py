"""Loops over arrays that are compiled when they are first used, and their NumPy versions for small arrays.

Compilation takes seconds, and loading compiled code half a second, so small data never need it. Only
`_numba` imports Numba, when the first loop is compiled. Three rules hold for all loops:

- They are `nogil` and single-threaded. Threads are added from outside (`adagrad_diff._threads`), so
  concurrent runs in one process are safe whatever Numba's threading layer.
- Indices are unsigned before they are used: Numba's handling of negative indices doubles the time of
  a sparse product.
- Sums may be reordered (`compiled`), but nothing assumes finite numbers, because NaN and inf must be
  reported. Compare with ``< np.inf``: Numba's ``np.isfinite(x)`` is ``x - x``, which reordering turns
  into 0. A loop that adds up does not write to an array: whether it is vectorized, and so the order
  of its sum, would depend on addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from typing import Any, overload

import numpy as np

__all__ = ["compiled", "is_small", "plain"]

# Entries up to which NumPy is used. At 1000 x 20 it takes 10 us longer per iteration than compiled
# loops, which pay for their compilation after 200,000 iterations.
MAX_NUMPY_SIZE = 1 << 15
MAX_SQUARE_SIZE = 1 << 20  # entries of a square matrix up to which BLAS multiplies as fast
MAX_PYTHON_SIZE = 128  # entries up to which a loop without a NumPy version runs as it is

LOSS_PACKAGE = str(Path(__file__).parents[1] / "losses")  # where scalar functions consist of ufuncs

largest_small = 1 << 62  # entries; tests of compiled loops set it to -1


class Kernel:
    """A loop over arrays: its NumPy version runs if the first array is small, else it is compiled."""

    def __init__(
        self,
        loop: Any,
        fastmath: bool = False,
        small: Any = None,
        limit: int | None = None,
        stored: bool = True,
    ):
        """Declare a loop.

        `fastmath` lets sums be reordered, `small` is the NumPy version (or "python" for the loop itself)
        for at most `limit` entries, and `stored` keeps machine code on disk.
        """
        update_wrapper(self, loop)
        self.py_func, self.fastmath, self.stored = loop, fastmath, stored
        python = small == "python"
        small = loop if python else small
        self.small = None if small is None else np.errstate(all="ignore")(small)
        self.limit = limit or (MAX_PYTHON_SIZE if python else MAX_NUMPY_SIZE)

    def __call__(self, *args: Any) -> Any:
        if self.small is not None and np.size(args[0]) <= min(self.limit, largest_small):
            return self.small(*args)
        return self.compiled(*args)

    @cached_property
    def compiled(self) -> Any:
        """The loop as machine code."""
        from . import _numba

        return partial(_numba.run, self)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # type: ignore[no-any-return]


def is_small(size: int, square: bool = False) -> bool:
    """Return whether NumPy should process a matrix with this number of entries."""
    return size <= min(MAX_SQUARE_SIZE if square else MAX_NUMPY_SIZE, largest_small)


@overload
def compiled(loop: Callable[..., Any]) -> Kernel: ...


@overload
def compiled(**options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...


def compiled(loop: Any = None, **options: Any) -> Any:
    """Declare a kernel whose sums may be reordered. Loops that gather numbers become slower by that."""
    return partial(compiled, **options) if loop is None else Kernel(loop, True, **options)


@overload
def plain(loop: Callable[..., Any]) -> Kernel: ...


@overload
def plain(**options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...


def plain(loop: Any = None, **options: Any) -> Any:
    """Declare a kernel whose operations stay in their order."""
    return partial(plain, **options) if loop is None else Kernel(loop, **options)


def scalar_kernel(template: Callable[..., Any]) -> Callable[[Any], Kernel]:
    """Return a function that makes the kernel `template(scalar, residuals)` of a scalar loss, once."""

    @cache
    def specialize(scalar: Any) -> Kernel:
        from . import _numba

        stored = takes_arrays(scalar)
        return Kernel(_numba.specialized(template, scalar, stored), fastmath=True, stored=stored)

    return specialize


def takes_arrays(scalar: Any) -> bool:
    """Return whether the scalar function is one of this package. Those of users may have branches."""
    code = getattr(scalar, "__code__", None)
    return code is not None and code.co_filename.startswith(LOSS_PACKAGE)
