"""Threads for ranges of rows, and limits on the threads of BLAS."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

WORK_PER_THREAD = 200_000  # multiplications below which a second thread does not pay


@cache
def cores() -> int:
    """Return NUMBA_NUM_THREADS, else OMP_NUM_THREADS, else the cores of this process."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").split(",")[0].strip()
        if value.isdigit() and int(value) > 0:
            return int(value)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _blas() -> list[Any]:
    """Return the BLAS libraries that threadpoolctl can limit; none if it is not installed."""
    return _found("scipy.linalg" in sys.modules)


@cache
def _found(with_scipy: bool) -> list[Any]:
    """Search for them, which takes milliseconds. SciPy brings its own when it is loaded."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return []
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def thread_count(work: float) -> int:
    """Return how many threads pay for `work` multiplications, within the limits of BLAS."""
    wanted = min(cores(), int(work // WORK_PER_THREAD))
    if wanted <= 1:
        return 1
    allowed = max((library.get_num_threads() or 1 for library in _blas()), default=wanted)
    return min(wanted, allowed)


_LIMITED = threading.Lock()
_users = 0  # how many `one_blas_thread` are active
_before: list[tuple[Any, int]] = []  # libraries, and their numbers of threads before


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the last active context ends: limits hold for the process."""
    global _users
    with _LIMITED:
        if _users == 0:
            _before[:] = [(library, library.get_num_threads()) for library in _blas()]
            for library, _ in _before:
                library.set_num_threads(1)
        _users += 1
    try:
        yield
    finally:
        with _LIMITED:
            _users -= 1
            if _users == 0:
                for library, threads in _before:
                    library.set_num_threads(threads)


@cache
def _pool(pid: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(1, cores() - 1), thread_name_prefix="adagrad_diff")


def over_rows(worker: Callable[[int, int, int], None], rows: int, threads: int) -> None:
    """Call worker(part, lo, hi) for equal ranges of rows, the first one in this thread."""
    cuts = [part * rows // threads for part in range(threads + 1)]
    pool = _pool(os.getpid())  # a forked process does not inherit the threads of a pool
    first, *others = [(part, cuts[part], cuts[part + 1]) for part in range(threads)]
    jobs = [pool.submit(worker, *part) for part in others]
    worker(*first)
    for job in jobs:
        job.result()
