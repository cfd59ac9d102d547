"""Threads: the usual environment variables and threadpoolctl are obeyed, runs side by side do not disturb each other."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from adagrad_diff import LAD, Logistic, Multinomial, minimize
from adagrad_diff.common import threads as module
from user_losses import data

A, REAL, LABELS, CLASSES = data(samples=3000, features=300)  # enough work for four threads
LOSSES = {
    "dense": lambda: LAD(A, REAL),
    "Fortran": lambda: Logistic(np.asfortranarray(A), LABELS),
    "CSR": lambda: Logistic(sparse.csr_array(A), LABELS),
    "Multinomial": lambda: Multinomial(A[:1000], CLASSES[:1000]),
}


@pytest.fixture
def four_threads(monkeypatch):
    """As if the machine had four cores, whatever it has."""
    monkeypatch.setattr(module, "cores", lambda: 4)
    monkeypatch.setattr(module, "_blas", list)
    module._pool.cache_clear()
    yield
    module._pool.cache_clear()


def test_small_work_is_done_in_one_thread(four_threads):
    per_thread = module.WORK_PER_THREAD
    assert [module.thread_count(k * per_thread) for k in (0, 1, 1.9, 2, 3.5, 4, 100)] == [1, 1, 1, 2, 3, 4, 4]


def test_threadpoolctl_is_obeyed(monkeypatch):
    monkeypatch.setattr(module, "cores", lambda: 4)
    for limit in (1, 2):
        with threadpool_limits(limit):
            assert module.thread_count(1e9) == limit
    with threadpool_limits(1, user_api="blas"):
        assert module.thread_count(1e9) == 1


def count_in_a_fresh_interpreter(**environment):
    cleared = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    code = "import numpy; from adagrad_diff.common.threads import cores, thread_count; print(cores(), thread_count(1e12))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**cleared, **environment}, capture_output=True, text=True, timeout=120, check=True
    )
    return [int(number) for number in done.stdout.split()]


def cores_by(monkeypatch, name, text):
    """What is counted with this variable alone, asked anew."""
    for other in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, text)
    return module.cores.__wrapped__()


@pytest.mark.parametrize("name", ["NUMBA_NUM_THREADS", "OMP_NUM_THREADS"])
def test_environment(name, monkeypatch):
    assert count_in_a_fresh_interpreter(**{name: "1"}) == [1, 1]
    assert cores_by(monkeypatch, name, "3") == 3


def test_environment_of_blas():
    assert count_in_a_fresh_interpreter(NUMBA_NUM_THREADS="4", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")[1] == 1


@pytest.mark.parametrize("text", ["", "many", "0", "-1"])
def test_environment_that_says_nothing(text, monkeypatch):
    assert cores_by(monkeypatch, "OMP_NUM_THREADS", text) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("case", LOSSES)
def test_result_does_not_depend_on_threads(case, four_threads):
    loss = LOSSES[case]()
    many = minimize(loss, eta=0.1, max_iter=15)
    module.cores = lambda: 1  # the fixture puts it back
    one = minimize(loss, eta=0.1, max_iter=15)
    assert not np.array_equal(one.x, many.x) or case in ("Fortran", "Multinomial")  # the sums are in another order
    np.testing.assert_allclose(many.x, one.x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", LOSSES)
def test_runs_side_by_side(case, four_threads):
    loss, etas = LOSSES[case](), [0.01, 0.05, 0.2, 1.0]
    serial = [minimize(loss, eta=eta, max_iter=15) for eta in etas]
    with ThreadPoolExecutor(4) as pool:
        parallel = list(pool.map(lambda eta: minimize(loss, eta=eta, max_iter=15), etas))
    for one, other in zip(serial, parallel, strict=True):
        for name in ("x", "x_avg", "x_best", "fun", "jac"):
            assert np.array_equal(one[name], other[name]), name


def test_an_error_in_a_worker_reaches_the_caller(four_threads):
    def worker(part, lo, hi):
        if part == 2:
            raise ZeroDivisionError(f"rows {lo} to {hi}")

    with pytest.raises(ZeroDivisionError, match="rows 50 to 75"):
        module.over_rows(worker, 100, 4)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_row_once(threads):
    seen = np.zeros(50, int)

    def worker(part, lo, hi):
        seen[lo:hi] += 1

    module.over_rows(worker, 50, threads)
    assert (seen == 1).all()


FORK = """
import os, sys
import numpy as np
from adagrad_diff import LAD, minimize
from adagrad_diff.common import threads as module

module.cores, module._blas = (lambda: 4), list
A = np.random.default_rng(0).standard_normal((3000, 300))
loss = LAD(A, A[:, 0] - A[:, 1])
before = minimize(loss, eta=0.1, max_iter=10).x
assert module.thread_count(A.size) == 4
child = os.fork()
if child == 0:
    same = np.array_equal(minimize(loss, eta=0.1, max_iter=10).x, before)
    os._exit(0 if same else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
same = np.array_equal(minimize(loss, eta=0.1, max_iter=10).x, before)
sys.exit(code or (0 if same else 2))
"""


def test_works_in_a_forked_child():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
