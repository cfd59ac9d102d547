"""Work in the threads that PyTorch computes with.

After an operation of PyTorch its OpenMP threads stay awake for some milliseconds, waiting for the next one. Threads of our own
would share the cores with them: a step just after a backward pass would take half as long again.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from .._threads import over_rows

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
HOME = os.getpid()  # a forked child has no OpenMP threads and would wait for them for ever


@cache
def _parallel() -> Any:
    """GOMP_parallel(body, data, threads, flags) of the OpenMP library that PyTorch has loaded; None if it has another one."""
    for path in Path(torch.__file__).parent.glob("lib/libgomp*.so*"):
        try:
            function = ctypes.CDLL(str(path)).GOMP_parallel
        except (OSError, AttributeError):
            continue
        function.argtypes, function.restype = (
            (BODY, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint),
            None,
        )
        return function
    return None


def over_team(worker: Callable[[int, int, int], None], rows: int, threads: int) -> None:
    """Call worker(part, lo, hi) for `threads` equal ranges of rows, as `over_rows` does, in PyTorch's own threads."""
    parallel = _parallel() if threads > 1 and os.getpid() == HOME else None
    if parallel is None:
        over_rows(worker, rows, threads)
        return
    parts, errors = iter(range(threads)), []

    def body(_: Any) -> None:
        try:
            for (
                part
            ) in parts:  # each thread takes the next one: a team may be smaller than asked for
                worker(part, part * rows // threads, (part + 1) * rows // threads)
        except BaseException as error:  # it cannot pass through OpenMP
            errors.append(error)

    parallel(BODY(body), None, threads, 0)
    if errors:
        raise errors[0]
