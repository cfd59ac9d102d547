"""Minibatch: steps follow the formulas, and batches depend on the seed and n only."""

from itertools import islice

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import naive
from adagrad_diff import (
    L1,
    AdaGradDiff,
    Box,
    ElasticNet,
    Logistic,
    Minibatch,
    Quadratic,
    Squared,
    check_loss,
    iterate,
    minimize,
)
from looping import looped
from loss_zoo import LINEAR, PARAMETER, TERMS, make, targets, weights
from naive_minibatch import Batches, Estimates, ends
from own_sources import Waves
from pairwise import pairwise

N, SIZE, ROUNDS = 11, 2, 5
CODES = np.random.default_rng(2).integers(-3, 4, N)
A = np.random.default_rng(1).standard_normal((N, 4)) * (
    np.random.default_rng(3).random((N, 4)) < 0.7
)
LAYOUTS = {
    "dense": np.asarray,
    "Fortran": np.asfortranarray,
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
}


@pairwise(kind=LINEAR, layout=LAYOUTS, terms=TERMS, reduce=["svrg", None], blocks=[None, "all"])
def test_steps_follow_the_estimates_of_the_formulas(kind, layout, terms, reduce, blocks):
    """With one block per coordinate the steps are compiled, with one block for all they are not."""
    loss = Minibatch(make(kind, LAYOUTS[layout](A), CODES, **terms), SIZE, seed=3, reduce=reduce)
    parameter = {
        name: value for name, value in PARAMETER.get(kind, {}).items() if name != "classes"
    }
    options = {**terms, "sample_weight": weights(N) if "sample_weight" in terms else None}
    batches = Batches(kind.__name__, A, targets(kind, CODES), **options, **parameter)
    x0 = 0.1 * np.random.default_rng(5).standard_normal(loss.shape)
    steps = ends(loss.length, ROUNDS)
    assert steps[-1] > 2 * ROUNDS
    estimates = Estimates(batches, loss.batch, loss.length, reduce)
    run = naive.L1(0.02), "AdaGradDiff", 0.1, steps[-1]
    plain = naive.run(estimates, x0, *run, intercept=loss.intercept, blocks=blocks)
    states = iterate(loss, x0, L1(0.02), AdaGradDiff(0.1, blocks=blocks))
    found = [(state.x.copy(), float(state.fun)) for state in islice(states, ROUNDS)]
    np.testing.assert_allclose([x for x, _ in found], plain.x[steps[1:]], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose([fun for _, fun in found], plain.F[steps[1:]], rtol=1e-9)


@pytest.mark.parametrize(
    "penalty", [None, L1(1e-4), L1(10.0), ElasticNet(0.01, 3.0), Box(-0.01, 0.02)], ids=str
)
def test_coordinates_that_are_rarely_seen(penalty):
    """A sparse coordinate makes all steps between two of its samples together."""
    rng = np.random.default_rng(0)
    rare = rng.standard_normal((600, 30)) * (rng.random((600, 30)) < np.geomspace(0.5, 1 / 600, 30))
    rare *= 10.0 ** rng.uniform(-3, 3, 30)
    b, x0 = np.sign(rng.standard_normal(600)), 0.01 * rng.standard_normal(30)
    options = {"eta": 0.1, "max_iter": 2, "on_failure": "ignore"}
    runs = [
        minimize(Minibatch(Logistic(layout(rare), b), 1), x0, penalty, **options)
        for layout in (np.asarray, sparse.csr_array)
    ]
    np.testing.assert_allclose(runs[1].x, runs[0].x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(runs[1].history.objective, runs[0].history.objective, rtol=1e-9)


# ------------------------------------------------------------ batches and rounds


def test_each_sample_is_in_as_many_batches_as_the_others():
    """So the mean of the estimates is the gradient. Batches begin anywhere with one probability."""
    loss = Minibatch(make(Logistic, A, CODES), SIZE)
    assert sorted(loss.order) == list(range(N))
    firsts = []
    for seed in range(40):
        other = Minibatch(make(Logistic, A, CODES), SIZE, seed=seed)
        place = {int(sample): k for k, sample in enumerate(other.order)}
        for n in range(1, 41):
            batch = other.batch(n)
            firsts.append(place[int(batch[0])])
            expected = np.take(other.order, firsts[-1] + np.arange(SIZE), mode="wrap")
            np.testing.assert_array_equal(batch, expected)
    deviations = np.bincount(firsts, minlength=N) - 1600 / N
    assert np.sum(deviations**2) / (1600 / N) < 36.0  # chi-squared, 10 degrees of freedom, at 1e-4


def test_batches_depend_on_the_seed_and_n_only():
    whole = make(Logistic, np.ones((500, 1)), np.arange(500))
    batches = lambda seed: [list(Minibatch(whole, 7, seed=seed).batch(n)) for n in range(1, 60)]
    found = batches(4)
    assert found == batches(4)
    assert len({tuple(batch) for batch in found}) > 50
    assert not any(batch == other for batch, other in zip(found, batches(5), strict=True))
    assert [len(set(batch)) for batch in found] == [7] * 59  # no sample twice


@pytest.mark.parametrize(("size", "seed"), [(1, 0), (5, 2**63 - 1), (40, 1)])
def test_the_number_of_steps_in_a_round_is_geometric(size, seed):
    loss = Minibatch(make(Logistic, np.ones((400, 1)), np.arange(400)), size, seed=seed)
    lengths, mean = np.array([loss.length(n) for n in range(4000)]), 400 / (2 * size)
    assert lengths.min() == 1
    for k in (1, round(mean), round(2 * mean)):
        share = (1 - 1 / mean) ** k
        assert abs(np.mean(lengths > k) - share) < 4 * np.sqrt(share * (1 - share) / 4000)


@looped("reduce", ["svrg", None])
def test_passes(reduce):
    whole = make(Logistic, A, CODES)
    loss = Minibatch(whole, 1, reduce=reduce)
    steps, expected = 0, []
    for n in range(1, 21):
        steps += loss.length(steps)
        expected.append(1 + n + (steps - n) / N)
    np.testing.assert_allclose(loss.schedule(20), expected)
    found = minimize(loss, eta=0.1, max_iter=20).history.passes
    np.testing.assert_array_equal(found, loss.schedule(20))
    np.testing.assert_array_equal(Minibatch(whole, 6).schedule(4), [2.0, 3.0, 4.0, 5.0])


def test_rows_stay_where_they_are():
    array, matrix = np.ascontiguousarray(A), sparse.csr_array(A)
    assert np.shares_memory(Minibatch(make(Logistic, array, CODES), SIZE).rows.entries, array)
    entries = Minibatch(make(Logistic, matrix, CODES), SIZE).rows.entries
    for own, given in zip(entries, (matrix.indptr, matrix.indices, matrix.data), strict=True):
        assert np.shares_memory(own, given)


# ------------------------------------------------------------ interface and errors


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
    assert (loss.shape, loss.dtype, loss.intercept) == ((5,), np.float64, True)
    assert repr(loss) == f"Minibatch({whole!r}, size=2, seed=0, reduce='svrg')"
    assert Minibatch(whole, 10**6).size == N


class Own(Waves):
    """A source of a user: rows are computed when they are asked for."""


LINEAR_MODEL = "'loss' parameter of Minibatch must be the loss of a linear model, such as Logistic"
LOSS = make(Logistic, A, CODES)


@looped(
    ("arguments", "words"),
    [
        ((Quadratic(np.eye(2), np.ones(2)), 1), LINEAR_MODEL),
        ((lambda x: (x @ x, 2 * x), 1), LINEAR_MODEL),
        ((Logistic, 1), LINEAR_MODEL),
        (
            (make(Logistic, aslinearoperator(A), CODES), 1),
            "Minibatch needs the rows of A in memory",
        ),
        ((Squared(Own(20, 3), np.ones(20)), 1), "Got Own instead: use the loss without Minibatch"),
        ((LOSS, 0), "'size' parameter of Minibatch"),
        ((LOSS, 2, -1), "'seed' parameter of Minibatch"),
        ((LOSS, 2, 2**63), "an integer from 0 to .* Got 9223372036854775808"),
        ((LOSS, 2, 0, "storm"), "'reduce' parameter of Minibatch must be one of 'svrg', None. Got"),
    ],
)
def test_sentences(arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        Minibatch(*arguments)
