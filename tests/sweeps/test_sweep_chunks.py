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
from checkpointing import header
from looping import looped
from sweeping import ETAS, PROBLEMS, REAL, A, assert_same, operator, starts
from user_losses import Bowl

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl


def needed(*arguments, **options):
    """Return the memory of one column in megabytes, as the error message states it."""
    with pytest.raises(
        ValueError, match=r"'memory' parameter of sweep is too small.* MB\. Give at least that"
    ) as caught:
        sweep(*arguments, **options, memory=1, n_jobs=1)
    return float(re.search(r"([\d.]+) MB", str(caught.value)).group(1))


def long_columns():
    """Return a loss whose trajectories need just below 0.15 MB each: the message rounds up to 0.01 MB."""
    return LAD(np.random.default_rng(0).standard_normal((9300, 6)), np.zeros(9300))


def plan(directory, *arguments, **options):
    """Return the columns (rule, first, last) of each chunk."""
    sweep(*arguments, **options, checkpoint=directory)
    return [header(path)["chunk"] for path in sorted(directory.glob("chunk-*.npz"))]


@pytest.mark.parametrize(
    "case",
    [
        "LAD, L1",
        "Logistic, CSR",
        "Multinomial",
        "a function",
        "rules of a number",
        "rules of a user",
    ],
)
def test_chunks_are_the_whole(case):
    loss, penalty, rules = PROBLEMS[case]()
    arguments = loss, penalty, rules, ETAS, starts(loss, 5), 20
    whole, column = sweep(*arguments, record=3, n_jobs=1), needed(*arguments, record=3)
    for width, jobs in ((1, 1), (2, 2), (7, 3)):
        found = sweep(*arguments, record=3, memory=1.001e6 * column * width * jobs, n_jobs=jobs)
        assert_same(found, whole, rtol=1e-12)


def test_one_thread_each():
    """While chunks run side by side, each has one core; afterwards all is as before."""
    from threadpoolctl import threadpool_info

    def threads():
        return [
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        ]

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


@pytest.mark.parametrize(
    ("rules", "jobs", "pieces"),
    [([AdaGrad], 4, 4), ([AdaGrad, AdaGradDiff], 4, 2), ([AdaGrad], 1, 1)],
)
def test_cores_get_work(rules, jobs, pieces, tmp_path):
    """There are as many chunks as occupy all cores, of about the same size."""
    loss = LAD(A, REAL)
    chunks = plan(
        tmp_path / "all",
        loss,
        None,
        rules,
        np.geomspace(0.1, 1, 20),
        starts(loss, 10),
        1,
        n_jobs=jobs,
    )
    sizes = {high - low for _, low, high in chunks}
    assert len(chunks) == pieces * len(rules)
    assert max(sizes) - min(sizes) <= 1
    assert sum(high - low for _, low, high in chunks) == 200 * len(rules)
    arguments = long_columns(), None, rules, np.geomspace(0.1, 1, 20), starts(loss, 10), 1
    small = plan(
        tmp_path / "small", *arguments, n_jobs=jobs, memory=1.001e6 * 7 * jobs * needed(*arguments)
    )
    assert max(high - low for _, low, high in small) == 7


def test_sizes():
    """Units are powers of 1000, or of 1024 with an i."""
    arguments = long_columns(), None, AdaGrad, [0.1], starts(LAD(A, REAL), 3), 1
    column = needed(*arguments)
    enough = [
        f"{column} MB",
        f"{1e3 * column:.3f}kb",
        f" {column / 1e3:.9f} GB",
        f"{column * 1e6 / 2**20:.6f}MiB",
        "1TiB",
        "3TB",
    ]
    enough += [
        column * 1e6,
        np.float32(2e9),
        2**30,
        f"{column * 1e6 / 2**10 + 1:.0f} KiB",
        f"{column * 1e6 + 1:.0f}B",
    ]
    for size in enough:
        sweep(*arguments, memory=size, n_jobs=1)
    for size in (
        f"{0.97 * column * 1e6 / 2**20:.6f} MiB",
        f"{0.97 * column:.6f} MB",
        f"{column * 900:.0f} KiB",
        "100",
        "100B",
    ):
        with pytest.raises(ValueError, match="too small"):
            sweep(*arguments, memory=size, n_jobs=1)


@looped(
    "size",
    [
        "",
        "GB",
        "2XB",
        "2BG",
        "two GB",
        "-2GB",
        "0",
        0,
        -1,
        None,
        True,
        float("nan"),
        "inf",
        b"2GB",
        "2G",
    ],
)
def test_sizes_that_are_none(size):
    with pytest.raises(
        ValueError,
        match=r"The 'memory' parameter of sweep must be a size such as '2GB' or 2e9\. Got ",
    ):
        sweep(LAD(A, REAL), None, AdaGrad, 0.1, np.zeros(6), 1, memory=size)


def test_too_little_memory():
    for n_iter in (10, 123, 1777):  # the stated amount is enough, however it is rounded
        arguments = LAD(A, REAL), None, AdaGrad, [0.1], starts(LAD(A, REAL), 3), n_iter
        assert_same(
            sweep(*arguments, memory=f"{needed(*arguments)} MB", n_jobs=3), sweep(*arguments), 1e-12
        )


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


@pytest.mark.parametrize(
    ("kind", "samples", "features", "columns", "jobs"),
    [
        ("C", 3000, 50, 10, 1),
        ("C", 50, 2000, 40, 2),
        ("Fortran", 3000, 50, 40, 2),
        ("float32", 3000, 50, 20, 1),
        ("CSR", 3000, 50, 40, 2),
        ("CSC", 3000, 50, 10, 1),
        ("operator", 3000, 50, 20, 2),
        ("Multinomial", 3000, 50, 10, 1),
        ("Quadratic", 3000, 50, 40, 2),
    ],
)
def test_memory_stays_in_the_budget(kind, samples, features, columns, jobs):
    loss = MEASURED[kind](np.random.default_rng(5).standard_normal((samples, features)))
    arguments = (
        loss,
        L1(0.01),
        [AdaGradDiff, AdaGrad],
        np.geomspace(0.1, 1.0, 9),
        np.zeros((*loss.shape, 8)),
        9,
    )
    options = {
        "keep_x": False,
        "memory": 1e6 * columns * needed(*arguments, keep_x=False),
        "n_jobs": jobs,
    }
    sweep(*arguments, **options)  # everything is imported, compiled and cached
    tracemalloc.start()
    try:
        result = sweep(*arguments, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    small = 1 << 20  # bytes of what NumPy allocates for small data, a few arrays in each thread
    assert peak < options["memory"] + 2 * result.nbytes + 600_000 + jobs * small
