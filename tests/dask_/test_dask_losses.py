"""Losses over Dask collections, in threads: answers are those of the array in memory."""

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest

import adagrad_diff.dask as on_dask
from adagrad_diff import (
    L1,
    LAD,
    Ridge,
    duality_gap,
    iterate,
    losses,
    minimize,
    polish,
)
from adagrad_diff.dask import source
from adagrad_diff.rules import AdaGradDiff
from dask_data import CODES, dense, entries, sparse_rows
from loss_zoo import LINEAR, TERMS, make, same
from pairwise import pairwise

pytestmark = pytest.mark.peer


@pairwise(
    kind=LINEAR, chunks=[dense, sparse_rows], options=[{}, {"sample_weight": True}, TERMS[-1]]
)
def test_every_loss(kind, chunks, options):
    A, rng = entries(), np.random.default_rng(1)
    blocks, array = make(kind, source(chunks(A)), CODES, **options), make(kind, A, CODES, **options)
    for batch in ((), (3,), (12,)):
        x = 0.1 * rng.standard_normal((*array.shape, *batch))
        same(blocks.value_and_grad(x), array.value_and_grad(x))
        oracles = [f.oracle(x) for f in (blocks, array)]
        for oracle in oracles:
            oracle(x, np.empty_like(x))
        column = 1 if batch else None
        np.testing.assert_allclose(*(oracle.residuals(column) for oracle in oracles), atol=1e-15)
        np.testing.assert_allclose(*(oracle.r for oracle in oracles), atol=1e-15)


# ------------------------------------------------------------ runs


RUNS = [{"eta": 0.3}, {"eta": [0.1, 1.0]}, {"eta": 0.3, "stop": "gap"}, {"finish": False}, {}]
KINDS = [
    losses.LAD,
    losses.Quantile,
    losses.Hinge,
    losses.Squared,
    losses.Logistic,
    losses.Multinomial,
]


@pairwise(options=RUNS, kind=KINDS[::2] + KINDS[-1:], chunks=[dense, sparse_rows])
def test_minimize(kind, options, chunks):
    A = entries()
    call = {"penalty": L1(0.02), "max_iter": 60, "tol": 1e-6, "on_failure": "ignore", **options}
    found, wanted = (
        minimize(make(kind, M, CODES, intercept=True), **call) for M in (source(chunks(A)), A)
    )
    exact = "eta" in options and "stop" not in options  # else rounding decides when to stop
    rtol = 1e-10 if exact else 1e-3 if "finish" in options else 1e-6
    np.testing.assert_allclose(found.fun, wanted.fun, rtol=rtol)
    if exact:
        np.testing.assert_allclose(found.x, wanted.x, rtol=1e-7, atol=1e-9)
    if options == {}:
        assert found.success
        assert found.gap <= 1e-6 * found.fun


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certificates(dtype):
    A = entries().astype(dtype)
    for kind in (losses.LAD, losses.Poisson)[: 2 if dtype is np.float64 else 1]:
        loss, array = (make(kind, M, CODES, intercept=True) for M in (source(dense(A)), A))
        best = minimize(array, penalty=L1(0.05), tol=1e-5)
        for x in (np.zeros(array.shape), best.x):
            here, there = (duality_gap(f, L1(0.05), x) for f in (loss, array))
            assert here.bound <= best.fun + 1e-5 * abs(best.fun)
            assert here.gap == pytest.approx(there.gap, rel=1e-2, abs=1e-4 * abs(best.fun))


def test_no_penalty_and_columns_that_depend():
    A = entries()
    A[:, 4] = A[:, 0] + A[:, 1]
    runs = [
        minimize(losses.Squared(M, CODES, intercept=True), tol=1e-8) for M in (source(dense(A)), A)
    ]
    assert all(run.success for run in runs)
    assert runs[0].fun == pytest.approx(runs[1].fun, rel=1e-10)


@pytest.fixture
def rounds():
    """Record the graph and the answers of every computation."""
    found = []

    def get(graph, keys, **options):
        found.append((graph, dask.get(graph, keys)))
        return found[-1][1]

    with dask.config.set(scheduler=get):
        yield found


@pytest.mark.parametrize("kind", [losses.LAD, losses.Multinomial])
def test_an_iteration_is_one_round(kind, rounds):
    """The round serves all trajectories, and its graph contains x once."""
    loss = make(kind, source(dense(entries())), CODES, intercept=True)
    run = iterate(loss, np.zeros((*loss.shape, 3)), L1(0.01), AdaGradDiff([0.1, 0.3, 1.0]))
    next(run)
    for _ in range(4):
        rounds.clear()
        next(run)
        ((graph, _),) = rounds
        assert len({id(task[3]) for task in graph.values()}) == 1


def test_rounds_of_a_run(rounds):
    """The targets are sent once, the columns and the start take one round each. The rest are Newton steps and certificates."""
    A = np.random.default_rng(0).standard_normal((60_000, 9))
    noise = 5 * np.random.default_rng(1).standard_normal(60_000)
    rows = source(da.from_array(A, chunks=(20_000, 9)))
    binary = losses.Logistic(rows, np.sign(A @ np.arange(9.0) + noise), intercept=True)
    several = losses.Multinomial(rows, np.digitize(A[:, 0], [-0.5, 0.5]), intercept=True)
    for loss, penalty, others in ((binary, Ridge(0.01), 9), (several, L1(0.02), 11)):
        rounds.clear()
        result = minimize(loss, penalty=penalty, tol=1e-6)
        assert result.gap <= 1e-6 * result.fun
        assert len(rounds) <= others + result.finish.rounds
        if (
            loss is binary
        ):  # Only the means of columns and their spread, and the exact objective, are new.
            rounds.clear()
            assert duality_gap(loss, penalty, result.x).gap <= 1e-6 * result.fun
            assert len(rounds) <= 3


def test_what_was_asked_before_is_told_again():
    """The same numbers, of the point that is asked for, with an axis of trajectories or without."""
    A, b = entries(), CODES.astype(float)
    rng, far, near = (
        np.random.default_rng(2),
        LAD(source(dense(A)), b, intercept=True),
        LAD(A, b, intercept=True),
    )
    points = rng.standard_normal((2, 6))
    for x in (
        points[0],
        points[0],
        points[0][:, None],
        points[1][:, None],
        points[1],
        np.stack(points, 1),
        points[0],
    ):
        oracles = [loss.oracle(x) for loss in (far, near)]
        (f, g), (f2, g2) = ((oracle(x, g := np.empty_like(x)), g) for oracle in oracles)
        same((f, g), (f2, g2))
        assert oracles[0].r.shape == oracles[1].r.shape
        np.testing.assert_allclose(oracles[0].r, oracles[1].r, atol=1e-15)


def test_losses_over_one_source_do_not_mix():
    """A source keeps the targets of a few losses."""
    A, b = source(sparse_rows(entries())), CODES.astype(float)
    several = [LAD(A, b + k) for k in range(6)]
    values = [f.value_and_grad(np.ones(5))[0] for f in several * 2]
    wanted = [LAD(entries(), b + k).value_and_grad(np.ones(5))[0] for k in range(6)]
    assert values == pytest.approx(wanted * 2)
    twice = [LAD(A, b, intercept=flag) for flag in (False, True)]
    for f in twice:
        f.b, f.weight = twice[0].b, twice[0].weight
    x = np.ones(6)
    assert twice[0].value_and_grad(x[:5])[0] != twice[1].value_and_grad(x)[0]


def test_a_finish_fetches_few_entries(rounds):
    """These are the samples near their kinks and the columns of the support."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20_000, 100))
    b = A[:, 0] - 2 * A[:, 1] + 0.1 * rng.standard_cauchy(20_000)
    near = minimize(LAD(A, b), penalty=L1(0.05), eta=0.1, max_iter=100).x
    loss = on_dask.LAD(da.from_array(A, chunks=(5000, 100)), b)
    rounds.clear()
    assert polish(loss, L1(0.05), near, tol=1e-10).success
    assert sum(len(cloudpickle.dumps(answers)) for _, answers in rounds) < A.nbytes / 4
