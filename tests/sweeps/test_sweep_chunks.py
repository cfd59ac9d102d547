"""However the columns of a sweep are cut, on however many threads, the result is the same, and fits into the memory."""

import re
import threading
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Logistic,
    Multinomial,
    Quadratic,
    Squared,
    sweep,
)
from adagrad_diff.sweeps import chunks
from adagrad_diff.sweeps import run as module
from adagrad_diff.sweeps.chunks import Trajectories
from looping import looped
from sweeping import ETAS, PROBLEMS, REAL, RULES, A, assert_same, operator, starts
from user_losses import Bowl

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl


def widths(plan):
    return {chunk.high - chunk.low for chunk in plan}


@pytest.mark.parametrize(
    "case", ["LAD, L1", "Logistic, CSR", "Multinomial", "kernel", "a function", "rules of a number", "rules of a user"]
)
def test_chunks_are_the_whole(case):
    def problem():
        loss, penalty, rules = PROBLEMS[case]()
        return loss, penalty, rules, ETAS, starts(loss, 5), 20

    rules = problem()[2]
    whole = sweep(*problem(), record=3, n_jobs=1)
    trajectories = Trajectories(*problem(), 3, True)
    seen = set()
    for width, jobs in ((1, 1), (1, 3), (2, 2), (4, 1), (7, 2), (100, 3)):
        budget = 1.001 * trajectories.column * width * jobs
        plan = trajectories.plan(budget, jobs)
        assert max(widths(plan)) <= width
        seen |= widths(plan)
        for name in rules:  # every column once
            covered = [c for chunk in plan if chunk.rule == name for c in range(chunk.low, chunk.high)]
            assert covered == list(range(len(ETAS) * 5))
        assert_same(sweep(*problem(), record=3, memory=budget, n_jobs=jobs), whole, rtol=1e-12)
    assert len(seen) >= 4


def test_the_number_of_threads_changes_nothing(monkeypatch):
    arguments = LAD(A, REAL), L1(0.02), RULES, ETAS, starts(LAD(A, REAL), 5), 30
    plan = Trajectories(*arguments, 1, True).plan(1e5, 4)
    assert len(plan) > 12
    monkeypatch.setattr(Trajectories, "plan", lambda self, budget, jobs: plan)
    results = [sweep(*arguments, n_jobs=jobs) for jobs in (1, 2, 3, 7)]
    for result in results[1:]:
        assert_same(result, results[0])


def test_one_thread_each():
    """While chunks run side by side, each has one core; afterwards all is as before."""
    from threadpoolctl import threadpool_info

    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    seen = []

    def loss(x):
        seen.append((threading.current_thread().name, threads()))
        return Bowl()(x)

    before = threads()
    sweep(loss, None, [AdaGrad, AdaGradDiff], ETAS, np.zeros((3, 2)), 5, n_jobs=2)
    inside = [count for name, count in seen if name.startswith("adagrad_diff.sweep")]
    assert len(inside) >= 10
    assert all(count == 1 for counts in inside for count in counts)
    assert threads() == before


def test_cores_get_work():
    """As many chunks as occupy all cores, but none that is narrow without need."""
    loss = LAD(A, REAL)
    x0s = starts(loss, 10)
    for rules, jobs, pieces in (([AdaGrad], 4, 4), ([AdaGrad, AdaGradDiff], 4, 2), ([AdaGrad, AdaGradDiff], 1, 1)):
        plan = Trajectories(loss, None, rules, np.geomspace(0.1, 1, 20), x0s, 5, 1, True).plan(2e9, jobs)
        assert len(plan) == pieces * len(rules)
        assert max(widths(plan)) - min(widths(plan)) <= 1
    few = Trajectories(loss, None, [AdaGrad], [0.1, 0.2], x0s, 5, 1, True).plan(2e9, 16)
    assert widths(few) == {chunks.FEWEST_COLUMNS}
    long = Trajectories(Logistic(np.ones((50_000, 1)), np.ones(50_000)), None, [AdaGrad], ETAS, np.ones((1, 64)), 5, 1, True)
    assert widths(long.plan(2e9, 1)) == {chunks.CHUNK_COLUMNS}  # their predictions fill the cache
    assert max(widths(long.plan(20 * long.column, 1))) <= 20


SIZES = {
    "2GB": 2e9,
    "2 gb": 2e9,
    " 512MiB ": 512 * 2**20,
    "1.5KiB": 1536,
    "1e3 kB": 1e6,
    "3TB": 3e12,
    "2TiB": 2**41,
    "1GiB": 2**30,
    "100": 100,
    "100B": 100,
    2e9: 2e9,
    2**30: 2**30,
    np.float32(1e6): 1e6,
}


@looped("size", SIZES)
def test_sizes(size):
    assert module._bytes(size) == SIZES[size]


@looped("size", ["", "GB", "2XB", "2BG", "two GB", "-2GB", "0", 0, -1, None, True, float("nan"), "inf", b"2GB", "2G"])
def test_sizes_that_are_none(size):
    with pytest.raises(ValueError, match=r"The 'memory' parameter of sweep must be a size such as '2GB' or 2e9\. Got "):
        sweep(LAD(A, REAL), None, AdaGrad, 0.1, np.zeros(6), 1, memory=size)


def test_too_little_memory():
    for n_iter in (10, 57, 123, 344, 1777):  # what is said is enough, however it is rounded
        arguments = LAD(A, REAL), None, AdaGrad, [0.1], starts(LAD(A, REAL), 3), n_iter
        with pytest.raises(ValueError, match=r"'memory' parameter of sweep is too small.* MB\. Give at least that") as caught:
            sweep(*arguments, memory="1KB", n_jobs=3)
        needed = re.search(r"[\d.]+ MB", str(caught.value)).group()
        assert_same(sweep(*arguments, memory=needed, n_jobs=3), sweep(*arguments), 1e-12)  # one after another, if need be


MEASURED = {
    "C": lambda B: Logistic(B, np.ones(len(B))),
    "Fortran": lambda B: Logistic(np.asfortranarray(B), np.ones(len(B))),
    "float32": lambda B: Logistic(B.astype(np.float32), np.ones(len(B))),
    "CSR": lambda B: Logistic(sparse.csr_array(B * (B > 2)), np.ones(len(B))),
    "CSC": lambda B: Logistic(sparse.csc_array(B * (B > 2)), np.ones(len(B))),
    "operator": lambda B: Squared(operator(B), np.ones(len(B))),
    "Multinomial": lambda B: Multinomial(B, np.arange(len(B)) % 3),
    "Quadratic": lambda B: Quadratic(np.eye(B.shape[1]), np.ones(B.shape[1])),
}


BUDGETS = [(10, 1, False), (40, 2, False), (72, 1, True)]  # in columns; the threads; and whether there is a checkpoint


@pytest.mark.parametrize(  # all budgets with two kinds, the others in turn
    ("kind", "samples", "features", "budgets"),
    [
        *((k, 3000, 50, BUDGETS if k in ("C", "CSR") else [BUDGETS[i % 3]]) for i, k in enumerate(MEASURED)),
        ("C", 50, 2000, BUDGETS[1:]),
        ("CSR", 50, 2000, BUDGETS[:1]),
    ],
)
def test_memory_stays_in_the_budget(kind, samples, features, budgets, monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1 << 40)  # only the budget limits a chunk
    loss = MEASURED[kind](np.random.default_rng(5).standard_normal((samples, features)))
    x0s = np.zeros((*loss.shape, 8))
    arguments = loss, L1(0.01), [AdaGradDiff, AdaGrad], np.geomspace(0.1, 1.0, 9), x0s, 9
    column = Trajectories(*arguments, 1, False).column
    for trajectories, jobs, checkpoint in budgets:
        budget = trajectories * column
        monkeypatch.setattr(module, "SAVE", 0.005 if checkpoint else 30.0)

        def run(place, *, budget=budget, jobs=jobs, checkpoint=checkpoint):
            return sweep(*arguments, keep_x=False, memory=budget, n_jobs=jobs, checkpoint=place if checkpoint else None)

        run(tmp_path / "first")  # so that everything is imported, compiled and cached, here and in other libraries
        tracemalloc.start()
        try:
            result = run(tmp_path / "second")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < budget + 2 * result.nbytes + 600_000, (peak, budget)  # the results, and a little
