"""Sources of users, which compute their blocks on demand: the answers are those of the array."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    Hinge,
    Logistic,
    Multinomial,
    Quadratic,
    Squared,
    critical_lam,
    duality_gap,
    minimize,
)
from adagrad_diff.linalg import Source
from loss_zoo import make, named, same
from own_sources import OneBuffer, Replaced, SparseWaves, Squares, Waves, dense
from pairwise import pairwise

SOURCES = [Waves, SparseWaves, OneBuffer]
CODES = np.arange(60) * 7 % 11


@pairwise(
    kind=[Hinge, Squared, Multinomial],
    source=SOURCES,
    options=[{"eta": 0.3}, {"eta": [0.1, 1.0]}, {"eta": 0.3, "stop": "gap"}, {}, {"stop": "gap"}],
)
def test_minimize(kind, source, options):
    A = source()
    runs = [
        minimize(
            make(kind, M, CODES, intercept=True),
            penalty=L1(0.02),
            max_iter=60,
            tol=1e-4,
            on_failure="ignore",
            **options,
        )
        for M in (A, dense(A))
    ]
    np.testing.assert_allclose(runs[0].fun, runs[1].fun, rtol=1e-6)
    if "eta" in options:  # the search for a step size amplifies rounding
        np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("kind", "dtype"), [(Hinge, np.float64), (LAD, np.float32), (Logistic, np.float64)]
)
def test_certificates_hold(kind, dtype):
    A = Waves(dtype=dtype)
    loss, array = (make(kind, M, CODES, intercept=True) for M in (A, dense(A)))
    penalty = L1(0.1 * critical_lam(loss, L1(1.0)))
    best = minimize(
        array, penalty=penalty, stop="gap", tol=1e-5, max_iter=5000, on_failure="ignore"
    )
    for x in (np.zeros(loss.shape), best.x):
        here, there = (duality_gap(f, penalty, x) for f in (loss, array))
        assert here.bound <= best.fun + 1e-12
        assert here.gap == pytest.approx(there.gap, rel=1e-2, abs=1e-4 * abs(best.fun))
    result = minimize(loss, penalty=penalty, stop="gap", tol=1e-3, max_iter=5000)
    assert result.success
    assert result.fun <= best.fun + 1.01e-3 * abs(result.fun)


def bits():
    """Return the bytes of a short run over blocks that threads would share if they could."""
    found = []
    for source in SOURCES:
        loss = LAD(
            source(samples=2000, features=300, rows=1400), np.sin(np.arange(2000.0)), intercept=True
        )
        run = minimize(
            loss, penalty=L1(0.01), eta=0.1, max_iter=4, stop="gap", tol=1e-9, on_failure="ignore"
        )
        found += [run.x.tobytes().hex(), float(run.fun).hex(), float(run.bound).hex()]
    return found


@pytest.mark.slow
def test_the_number_of_threads_does_not_matter():
    code = "import test_sources; print(*test_sources.bits())"
    threads = (
        "1" if os.environ.get("NUMBA_NUM_THREADS") != "1" and (os.cpu_count() or 1) > 1 else "4"
    )
    environment = {
        **os.environ,
        "NUMBA_NUM_THREADS": threads,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == bits()


# ------------------------------------------------------------ folds


def sums_and_products(block, weight, x):
    """Return two sums of a block: of its entries, and of a vector of its samples."""
    rows = block.to_dense()
    return rows.sum(axis=0), float(weight @ (rows @ x))


@pytest.mark.parametrize("source", SOURCES, ids=named)
def test_fold_adds_up_the_blocks_in_their_order(source):
    A, rng = source(), np.random.default_rng(0)
    x, weight, rows = rng.standard_normal(5), rng.random(60), dense(A)
    total, product = 0.0, 0.0
    for lo, hi in itertools.pairwise(A.cuts):
        total = total + rows[lo:hi].sum(axis=0)
        product = product + float(weight[lo:hi] @ (rows[lo:hi] @ x))
    found = A.fold(sums_and_products, x, along=(weight,))
    assert np.array_equal(found[0], total)
    assert found[1] == product


def in_order(block):
    return [(block.first, block.shape[0])]


def test_fold_goes_through_all_rows_in_order():
    assert Waves(rows=25).fold(in_order, merge=lambda one, other: one + other) == [
        (0, 25),
        (25, 25),
        (50, 10),
    ]
    large = LAD(np.ones((1000, 2000)), np.ones(1000)).A  # more than a cache holds
    parts = large.fold(in_order, merge=lambda one, other: one + other)
    assert len(parts) > 1
    assert parts == sorted(parts)
    assert sum(rows for _, rows in parts) == 1000


# ------------------------------------------------------------ square matrices


def test_a_quadratic_over_blocks():
    Q, c, x = Squares(), np.sin(np.arange(20.0)), np.linspace(-1, 1, 20)
    blocks, array = Quadratic(Q, c), Quadratic(dense(Q), c)
    same(blocks.value_and_grad(x), array.value_and_grad(x))
    assert blocks.lipschitz() == pytest.approx(array.lipschitz())
    assert blocks.skew == array.skew
    assert duality_gap(blocks, L1(0.1), x).gap == pytest.approx(duality_gap(array, L1(0.1), x).gap)
    assert minimize(blocks, penalty=L1(0.1), stop="gap", tol=1e-4).success


@pytest.mark.parametrize(("i", "j"), [(0, 1), (3, 17), (19, 2)])
def test_skew_sees_every_pair(i, j):
    class Skewed(Squares):
        def block(self, k):
            rows = super().block(k)
            if self.cuts[k] <= i < self.cuts[k + 1]:
                rows[i - self.cuts[k], j] += 0.25
            return rows

    with pytest.raises(ValueError, match=r"^The matrix of Quadratic must be symmetric"):
        Quadratic(Skewed(), np.zeros(20))


# ------------------------------------------------------------ what is wrong is named


def with_nan(rows):
    rows[1, 2] = np.nan
    return rows


BLOCK = r"^Block 2 of Replaced \(rows 32 to 47\)"
WRONG = {
    "a column is missing": (lambda rows: rows[:, 1:], r"must have shape \(16, 5\). Got shape"),
    "nothing": (lambda rows: None, r"must have shape \(16, 5\). Got shape \(\)"),
    "NaN": (with_nan, r"contains nan at index \(1, 2\)"),
    "NaN in a sparse one": (
        lambda rows: sparse.csr_array(with_nan(rows)),
        r"contains nan at index \(1, 2\)",
    ),
    "text": (lambda rows: rows.astype(str), "must be real numbers"),
    "complex": (lambda rows: rows * 1j, "must be real numbers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_block_that_is_wrong_is_named(case):
    other, sentence = WRONG[case]
    with pytest.raises(ValueError, match=rf"{BLOCK} {sentence}"):
        Squared(Replaced(2, other), np.zeros(60))


def test_a_block_that_changes_its_shape_later():
    A = Replaced(2, lambda rows: rows)
    loss = Squared(A, np.zeros(60))
    A.other = lambda rows: rows[:, 1:]
    with pytest.raises(ValueError, match=rf"{BLOCK} must have shape \(16, 5\)"):
        minimize(loss, eta=0.1, max_iter=2)


CUTS = [None, [0, 30], [10, 60], [0, 30, 30, 60], [0, 40, 20, 60], []]


@pytest.mark.parametrize(
    "change",
    [{"cuts": cuts} for cuts in CUTS]
    + [{"shape": (60,)}, {"shape": (60, 0)}, {"shape": None}, {"dtype": np.int64}],
    ids=str,
)
def test_attributes_that_are_wrong(change):
    A = Waves()
    vars(A).update(change)
    name = next(iter(change))
    with pytest.raises(ValueError, match=rf"^The source Waves given as A must have .*{name}"):
        Squared(A, np.zeros(60))


def test_a_source_without_a_block():
    class Empty(Source):
        shape, cuts = (2, 1), (0, 2)

    with pytest.raises(NotImplementedError, match=r"^Empty has no method block\(k\)"):
        Squared(Empty(), np.zeros(2))
    with pytest.raises(TypeError, match=r"A is the class Waves. Did you mean Waves\(\)\?"):
        LAD(Waves, np.ones(60))
