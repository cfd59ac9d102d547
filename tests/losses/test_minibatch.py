"""Minibatch: estimates whose mean over all batches is the gradient, and batches that depend on the seed and n only."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from adagrad_diff import KernelSVMDual, Logistic, Minibatch, Quadratic, Squared, check_loss, kernels, minimize
from adagrad_diff.losses.estimates import Estimates
from looping import looped
from loss_zoo import LINEAR, PARAMETER, TERMS, make, named, targets, weights
from naive_minibatch import Batches
from own_sources import Waves

N, SIZE = 11, 3
CODES = np.random.default_rng(2).integers(-3, 4, N)
A = np.random.default_rng(1).standard_normal((N, 4)) * (np.random.default_rng(3).random((N, 4)) < 0.7)
LAYOUTS = {
    "dense": np.asarray,
    "Fortran": np.asfortranarray,
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "float32": lambda A: sparse.csr_array(A.astype(np.float32)),
}
REDUCE = ["svrg", "storm", None]


@cache
def every_batch():
    """For each place of the order the number of a batch that begins there."""
    loss, numbers = Minibatch(make(Squared, A, CODES), SIZE), {}
    for n in range(1, 200):
        numbers.setdefault(int(np.flatnonzero(loss.order == loss.batch(n)[0])[0]), n)
    assert len(numbers) == N
    return list(numbers.values())


def estimated(loss, x, y, v_prev=None):
    """The estimates at x after y, from every batch there is; y is the snapshot, too."""
    estimates, out = Estimates(loss, x), []
    oracle, g = loss.oracle(y), np.empty_like(y)
    oracle(y, out=g)
    estimates.snapshot(y, g, oracle.r)
    for n in every_batch():
        out.append(np.empty_like(x))
        estimates(n, x, y, g if v_prev is None else v_prev, out[-1])
    return np.array(out, np.float64)


def gradient(loss, x):
    loss.oracle(x)(x, out=(g := np.empty_like(x)))
    return g.astype(np.float64)


def points(loss, seed=5, columns=()):
    """Two points and something like a gradient."""
    return np.random.default_rng(seed).standard_normal((3, *loss.shape, *columns)).astype(loss.dtype)


# ------------------------------------------------------------ the mean, and how far from it


@pytest.mark.parametrize("kind", LINEAR, ids=named)
@looped("layout", LAYOUTS)
@looped("terms", TERMS)
@looped("reduce", REDUCE)
def test_the_mean_over_all_batches_is_the_gradient(kind, layout, terms, reduce):
    whole = make(kind, LAYOUTS[layout](A), CODES, **terms)
    losses = [whole, whole.coordinates().loss] if whole.intercept else [whole]
    for columns in ((), (2,)):
        for known in losses:  # as it is, and with columns of mean zero
            assert known is whole or known.center.size
            loss = Minibatch(whole, SIZE, reduce=reduce)
            loss = loss if known is whole else loss.coordinates().loss
            x, y, v_prev = points(loss, columns=columns)
            found = estimated(loss, x, y, v_prev)
            expected = gradient(known, x)
            if reduce == "storm":  # the mean given what was before
                expected += (1 - SIZE / N) * (v_prev - gradient(known, y))
            rounding = 200 * np.finfo(whole.dtype).eps * max(1.0, np.abs(found).max())
            np.testing.assert_allclose(found.mean(axis=0), expected, rtol=0, atol=rounding)
            if reduce is None:  # one batch says something else than another; slopes on one side of a kink are the same
                assert np.ptp(found, axis=0).max() > 1e4 * rounding


@looped("kind", LINEAR)
@looped("reduce", REDUCE)
def test_an_estimate_is_that_of_its_samples(kind, reduce):
    terms = {"l2": 0.3, "intercept": True}
    loss = Minibatch(make(kind, A, CODES, sample_weight=True, **terms), SIZE, reduce=reduce)
    parameter = {name: value for name, value in PARAMETER.get(kind, {}).items() if name != "classes"}
    plain = Batches(kind.__name__, A, targets(kind, CODES), sample_weight=weights(N), **terms, **parameter)
    x, y, v_prev = points(loss)
    for n, found in zip(every_batch(), estimated(loss, x, y, v_prev), strict=True):
        rows = loss.batch(n)
        expected = plain.gradient(rows, x)
        if reduce == "svrg":
            expected = expected - plain.gradient(rows, y) + plain.full(y)[1]
        elif reduce == "storm":
            expected = expected + (1 - SIZE / N) * (v_prev - plain.gradient(rows, y))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def spread(loss, x, y):
    """The variance of the estimates, over all batches."""
    found = estimated(loss, x, y)
    return np.sum((found - found.mean(axis=0)) ** 2) / len(found)


@looped("kind", [Logistic, Squared])
def test_the_variance_of_svrg_vanishes_like_the_squared_distance(kind):
    whole = make(kind, A, CODES, intercept=True)
    y, d, _ = points(whole)
    svrg, plain = ([spread(Minibatch(whole, SIZE, reduce=r), y + t * d, y) for t in (1e-2, 1e-3)] for r in ("svrg", None))
    np.testing.assert_allclose(svrg[0] / svrg[1], 100.0, rtol=0.1)
    np.testing.assert_allclose(plain[0] / plain[1], 1.0, rtol=0.1)
    assert spread(Minibatch(whole, SIZE), y, y) < 1e-30  # rounding, squared
    np.testing.assert_allclose(estimated(Minibatch(whole, SIZE), y, y), [gradient(whole, y)] * N, rtol=0, atol=1e-15)
    assert spread(Minibatch(whole, SIZE, reduce=None), y, y) > 1e-3


def test_a_storm_without_news_says_what_it_said():
    """Where x stays and v was right, so is the next one, up to what forgetting a part of it brings in."""
    whole = make(Logistic, A, CODES)
    y = points(whole)[0]
    own = spread(Minibatch(whole, SIZE, reduce=None), y, y)
    assert spread(Minibatch(whole, SIZE, reduce="storm"), y, y) == pytest.approx((SIZE / N) ** 2 * own)


# ------------------------------------------------------------ batches and rounds


def test_each_sample_is_in_as_many_batches_as_the_others():
    loss = Minibatch(make(Logistic, A, CODES), SIZE)
    counts = np.bincount(np.concatenate([loss.batch(n) for n in every_batch()]), minlength=N)
    np.testing.assert_array_equal(counts, SIZE)
    assert sorted(loss.order) == list(range(N))


def test_batches_depend_on_the_seed_and_n_only():
    whole = make(Logistic, np.ones((500, 1)), np.arange(500))
    loss, same, other = Minibatch(whole, 7, seed=4), Minibatch(whole, 7, seed=4), Minibatch(whole, 7, seed=5)
    forwards, backwards = ([list(loss.batch(n)) for n in some] for some in (range(1, 60), range(59, 0, -1)))
    assert forwards == backwards[::-1] == [list(same.batch(n)) for n in range(1, 60)]
    assert len({tuple(batch) for batch in forwards}) > 50
    assert sum(list(other.batch(n)) == batch for n, batch in enumerate(forwards, 1)) == 0
    assert [len(set(batch)) for batch in forwards] == [7] * 59  # no sample twice


def test_no_two_pairs_of_seed_and_n_have_a_number_in_common():
    numbers = {kernels.uniform(seed, n) for seed in range(64) for n in range(64)}
    assert len(numbers) == 64 * 64
    numbers = np.array(sorted(numbers))
    assert 0.0 <= numbers[0] < numbers[-1] < 1.0
    # Kolmogorov and Smirnov: of even numbers this is larger in one of ten thousand cases.
    assert np.abs(numbers - np.arange(64 * 64) / 64**2).max() < 2.2 / 64


@looped("size", [1, 5, 40])
@looped("seed", [0, 1, 2**63 - 1])
def test_rounds_are_geometric(size, seed):
    loss = Minibatch(make(Logistic, np.ones((400, 1)), np.arange(400)), size, seed=seed)
    lengths, mean = np.array([loss.length(n) for n in range(4000)]), 400 / (2 * size)
    assert lengths.min() == 1
    deviation = np.sqrt(mean * (mean - 1))
    assert abs(lengths.mean() - mean) < 4 * deviation / np.sqrt(4000)
    for k in (1, round(mean), round(2 * mean)):
        share = (1 - 1 / mean) ** k
        assert abs(np.mean(lengths > k) - share) < 4 * np.sqrt(share * (1 - share) / 4000)


@looped("reduce, cost", [("svrg", 1), ("storm", 2), (None, 1)])
def test_passes(reduce, cost):
    loss = Minibatch(make(Logistic, A, CODES), 1, reduce=reduce)
    steps, expected = 0, []
    for n in range(1, 21):
        steps += loss.length(steps)
        expected.append(1 + n + cost * (steps - n) / N)
    np.testing.assert_allclose(loss.schedule(20), expected)
    np.testing.assert_array_equal(minimize(loss, eta=0.1, max_iter=20).history.passes, loss.schedule(20))


def test_a_full_gradient_is_one_pass():
    loss = make(Logistic, A, CODES)
    np.testing.assert_array_equal(minimize(loss, eta=0.1, max_iter=4).history.passes, [2.0, 3.0, 4.0, 5.0])
    np.testing.assert_array_equal(Minibatch(loss, 6).schedule(4), [2.0, 3.0, 4.0, 5.0])


def test_rows_stay_where_they_are():
    array, matrix = np.ascontiguousarray(A), sparse.csr_array(A)
    assert np.shares_memory(Minibatch(make(Logistic, array, CODES), SIZE).rows.entries, array)
    entries = Minibatch(make(Logistic, matrix, CODES), SIZE).rows.entries
    for own, given in zip(entries, (matrix.indptr, matrix.indices, matrix.data), strict=True):
        assert np.shares_memory(own, given)


# ------------------------------------------------------------ what it is, and what it refuses


def test_it_is_a_loss():
    for terms in TERMS:
        assert check_loss(Minibatch(make(Logistic, A, CODES, **terms), SIZE))


def test_value_and_gradient_are_those_of_all_samples():
    whole = make(Logistic, A, CODES, l2=0.1, intercept=True)
    loss, x = Minibatch(whole, 2), np.arange(5.0)
    for found, expected in zip(loss.value_and_grad(x), whole.value_and_grad(x), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert loss.lipschitz() == whole.lipschitz()
    assert (loss.whole, whole.whole) == (whole, whole)
    assert (loss.shape, loss.dtype, loss.intercept, loss.smoothness) == ((5,), np.float64, True, whole.smoothness)
    assert repr(loss) == f"Minibatch({whole!r}, size=2, seed=0, reduce='svrg')"
    assert Minibatch(whole, 10**6).size == N


class Own(Waves):
    """A source of a user: rows are computed when they are asked for."""


@looped(
    "make_one, error, words",
    [
        (
            lambda: Minibatch(Quadratic(np.eye(2), np.ones(2)), 1),
            TypeError,
            "'loss' parameter of Minibatch must be the loss of",
        ),
        (lambda: Minibatch(KernelSVMDual(np.eye(2), [1, -1], 0.1), 1), TypeError, "such as Logistic"),
        (lambda: Minibatch(lambda x: (x @ x, 2 * x), 1), TypeError, "must be the loss of a linear model"),
        (lambda: Minibatch(Minibatch(make(Logistic, A, CODES), 1), 1), TypeError, "must be the loss of a linear model"),
        (lambda: Minibatch(Logistic, 1), TypeError, "must be the loss of a linear model"),
        (
            lambda: Minibatch(make(Logistic, aslinearoperator(A), CODES), 1),
            TypeError,
            "Minibatch needs the rows of A in memory",
        ),
        (lambda: Minibatch(Squared(Own(20, 3), np.ones(20)), 1), TypeError, "Got Own instead: use the loss without Minibatch"),
        (lambda: Minibatch(make(Logistic, A, CODES), 0), ValueError, "'size' parameter of Minibatch"),
        (lambda: Minibatch(make(Logistic, A, CODES), 2.5), ValueError, "'size' parameter of Minibatch"),
        (lambda: Minibatch(make(Logistic, A, CODES), 2, seed=-1), ValueError, "'seed' parameter of Minibatch"),
        (lambda: Minibatch(make(Logistic, A, CODES), 2, seed=2**63), ValueError, r"less than 2\*\*63. Got 9223372036854775808"),
        (lambda: Minibatch(make(Logistic, A, CODES), 2, reduce="saga"), ValueError, "'reduce' parameter of Minibatch.*'saga'"),
        (lambda: Minibatch(make(Logistic, A, CODES), 2, reduce=True), ValueError, "'reduce' parameter of Minibatch"),
        (lambda: Minibatch(make(Logistic, np.full((N, 2), np.nan), CODES), 2), ValueError, "A"),
    ],
)
def test_sentences(make_one, error, words):
    with pytest.raises(error, match=words):
        make_one()
