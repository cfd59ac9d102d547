"""Threads: the usual environment variables are obeyed, and results do not depend on the number of threads."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from adagrad_diff import LAD, Logistic, Multinomial, minimize
from user_losses import data

A, REAL, LABELS, CLASSES = data(samples=3000, features=300)  # enough work for four threads
LOSSES = {
    "dense": lambda: LAD(A, REAL),
    "Fortran": lambda: Logistic(np.asfortranarray(A), LABELS),
    "CSR": lambda: Logistic(sparse.csr_array(A), LABELS),
    "Multinomial": lambda: Multinomial(A[:1000], CLASSES[:1000]),
}


@pytest.mark.parametrize("case", LOSSES)
def test_runs_in_threads_and_side_by_side(case):
    """A run with one thread agrees with one that takes several, and runs at the same time do not disturb each other."""
    loss, etas = LOSSES[case](), [0.05, 1.0]
    serial = [minimize(loss, eta=eta, max_iter=10) for eta in etas]
    with threadpool_limits(1):
        np.testing.assert_allclose(
            minimize(loss, eta=etas[0], max_iter=10).x, serial[0].x, rtol=1e-9, atol=1e-12
        )
    with ThreadPoolExecutor(2) as pool:
        parallel = list(pool.map(lambda eta: minimize(loss, eta=eta, max_iter=10), etas))
    for one, other in zip(serial, parallel, strict=True):
        for name in ("x", "x_avg", "x_best", "fun", "jac"):
            assert np.array_equal(one[name], other[name]), name


FORK = """
import os, sys
import numpy as np
from adagrad_diff import LAD, minimize
from adagrad_diff._threads import cores, thread_count

A = np.random.default_rng(0).standard_normal((3000, 300))
loss = LAD(A, A[:, 0] - A[:, 1])
before = minimize(loss, eta=0.1, max_iter=10).x
child = os.fork()
if child == 0:
    same = np.array_equal(minimize(loss, eta=0.1, max_iter=10).x, before)
    os._exit(0 if same else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(cores(), thread_count(1e9), code)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"NUMBA_NUM_THREADS": "4", "OMP_NUM_THREADS": "1"}, "4 1 0"),  # BLAS obeys OMP_NUM_THREADS
        (
            {"OMP_NUM_THREADS": "3"},
            f"3 {min(3, os.cpu_count())} 0",
        ),  # BLAS takes no more threads than there are cores
        ({"NUMBA_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}, "3 1 0"),
        ({"NUMBA_NUM_THREADS": "many", "OMP_NUM_THREADS": "0"}, f"{len(os.sched_getaffinity(0))} "),
    ],
)
def test_environment_and_forked_children(environment, expected):
    cleared = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    run = [sys.executable, "-c", FORK]
    done = subprocess.run(
        run,
        env={**cleared, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(expected)
    assert done.stdout.endswith(" 0\n")  # the exit code of the child
