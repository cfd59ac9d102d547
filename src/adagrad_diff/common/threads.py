"""Row ranges in threads: the kernels release the GIL, so plain Python threads share the rows of A among the cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

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


@cache
def _blas() -> list[Any]:
    """The BLAS libraries that threadpoolctl can limit, if it is installed (otherwise nobody is limiting them)."""
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


class SumOverRows:
    """sums(x, offset, g, value, add): those of rows(x, offset, lo, hi, g, value, add) over all rows.

    Each thread has a range of rows, and memory of its own from the second one on; they are added up in the order of the rows.
    """

    def __init__(self, rows: Callable[..., None], samples: int, work: int):
        self.rows, self.samples, self.work = rows, samples, work
        self._g = self._value = np.empty((0,))  # one row per thread

    def __call__(self, x: np.ndarray, offset: Any, g: np.ndarray, value: np.ndarray, add: bool) -> None:
        threads = min(thread_count(self.work), self.samples)
        if threads == 1:
            self.rows(x, offset, 0, self.samples, g, value, add)
            return
        if threads != len(self._value):
            self._value, self._g = np.empty((threads, *value.shape)), np.empty((threads - 1, *g.shape), g.dtype)
        values, gradients = self._value, self._g
        values.fill(0)
        values[0] = value

        def worker(part: int, lo: int, hi: int) -> None:
            if part:
                self.rows(x, offset, lo, hi, gradients[part - 1], values[part], False)
            else:
                self.rows(x, offset, lo, hi, g, values[0], add)

        over_rows(worker, self.samples, threads)
        for other in gradients:
            g += other
        value[...] = values.sum(axis=0)
