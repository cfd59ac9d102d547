"""Row ranges in threads: the kernels release the GIL, so plain Python threads share the rows of A among the cores."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

WORK_PER_THREAD = 200_000  # multiplications below which a second thread costs more than it brings


@cache
def cores() -> int:
    """What the environment allows: NUMBA_NUM_THREADS, else OMP_NUM_THREADS, else every core of this process."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").split(",")[0].strip()
        if value.isdigit() and int(value) > 0:
            return int(value)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _blas() -> list[Any]:
    """The BLAS libraries that threadpoolctl can limit, if it is installed (otherwise nobody is limiting them)."""
    return _found("scipy.linalg" in sys.modules)


@cache
def _found(with_scipy: bool) -> list[Any]:
    """To look for them takes milliseconds. NumPy has one, and SciPy another as soon as it is loaded."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return []
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def thread_count(work: float) -> int:
    """Threads worth using for `work` multiplications, within the limits of the environment and of threadpoolctl."""
    wanted = min(cores(), int(work // WORK_PER_THREAD))
    if wanted <= 1:
        return 1
    allowed = max((library.get_num_threads() or 1 for library in _blas()), default=wanted)
    return min(wanted, allowed)


_LIMITED = threading.Lock()
_wanting = 0  # those who want one thread now
_before: list[tuple[Any, int]] = []  # libraries, and the threads they had


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS with a single thread, until the last of those who want that is through: limits hold for the whole process."""
    global _wanting
    with _LIMITED:
        if _wanting == 0:
            _before[:] = [(library, library.get_num_threads()) for library in _blas()]
            for library, _ in _before:
                library.set_num_threads(1)
        _wanting += 1
    try:
        yield
    finally:
        with _LIMITED:
            _wanting -= 1
            if _wanting == 0:
                for library, threads in _before:
                    library.set_num_threads(threads)


@cache
def _pool(pid: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(1, cores() - 1), thread_name_prefix="adagrad_diff")


def over_rows(worker: Callable[[int, int, int], None], rows: int, threads: int) -> None:
    """Call worker(part, lo, hi) for `threads` equal ranges of rows, the last one in this thread."""
    cuts = [part * rows // threads for part in range(threads + 1)]
    pool = _pool(os.getpid())  # a forked child has no threads of its parent's pool
    jobs = [pool.submit(worker, part, cuts[part], cuts[part + 1]) for part in range(1, threads)]
    worker(0, cuts[0], cuts[1])
    for job in jobs:
        job.result()
