"""Losses over Dask collections, in threads: answers are those of the array in memory."""

from itertools import islice

import dask.array as da
import numpy as np
import pytest

import adagrad_diff.dask as on_dask
from adagrad_diff import L1, LAD, Ridge, critical_lam, duality_gap, finish, iterate, losses, minimize
from adagrad_diff.dask import source
from adagrad_diff.dask._source import Partitions
from adagrad_diff.rules import AdaGradDiff
from dask_data import CODES, dense, entries, sparse_rows
from looping import looped
from loss_zoo import LINEAR, PARAMETER, TERMS, make, named, same, targets, weights

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("options", TERMS, ids=str)
@looped("chunks", [dense, sparse_rows])
@pytest.mark.parametrize("kind", LINEAR, ids=named)
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


def test_losses_have_the_names_of_the_package():
    A, b, x = entries(), np.arange(60.0), np.zeros(5)
    for kind in LINEAR:
        target, name = targets(kind, CODES), named(kind)
        loss = getattr(on_dask, name)(
            dense(A),
            da.from_array(target, chunks=13),
            sample_weight=da.from_array(weights(60), chunks=7),
            **PARAMETER.get(kind, {}),
        )
        assert type(loss) is kind
        array = kind(A, target, sample_weight=weights(60), **PARAMETER.get(kind, {}))
        point = np.full(array.shape, 0.1)
        same(loss.value_and_grad(point), array.value_and_grad(point))
    assert on_dask.Quantile(dense(A), b, 0.9).value_and_grad(x)[0] == losses.Quantile(A, b, 0.9).value_and_grad(x)[0]


# ------------------------------------------------------------ runs


RUNS = [{"eta": 0.3}, {"eta": [0.1, 1.0]}, {"eta": 0.3, "stop": "gap"}, {"finish": False}, {}]


@pytest.mark.parametrize("options", RUNS, ids=str)
@looped("kind", [losses.LAD, losses.Hinge, losses.Logistic, losses.Multinomial])
def test_minimize(kind, options):
    A = entries()
    runs = [
        minimize(make(kind, M, CODES, intercept=True), penalty=L1(0.02), max_iter=60, tol=1e-6, on_failure="ignore", **options)
        for M in (source(dense(A)), A)
    ]
    exact = options == {} or "eta" in options
    np.testing.assert_allclose(runs[0].fun, runs[1].fun, rtol=1e-10 if exact else 1e-3)  # the race amplifies rounding
    if exact:
        np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=1e-7, atol=1e-9)
    if options == {}:
        assert runs[0].success
        assert runs[0].gap <= 1e-6 * runs[0].fun


@looped("kind", [losses.LAD, losses.Quantile, losses.Hinge, losses.Squared, losses.Logistic, losses.Multinomial])
@pytest.mark.parametrize("chunks", [dense, sparse_rows])
def test_the_race_ends_with_a_proof(kind, chunks, monkeypatch):
    """Larger than what is finished at once: the race, the certificate from residuals, and the finish."""
    from adagrad_diff.solve import tries

    monkeypatch.setattr(tries, "INSTEAD", -1.0)
    monkeypatch.setattr(tries, "AT_ONCE", -1.0)
    rng = np.random.default_rng(3)
    A, codes = entries(400, 20), rng.integers(0, 11, 400)
    blocks, array = (make(kind, M, codes, intercept=True, sample_weight=True) for M in (source(chunks(A, (90, 10, 300))), A))
    penalty = L1(0.1 * critical_lam(array, L1(1.0)))
    assert critical_lam(blocks, L1(1.0)) == pytest.approx(critical_lam(array, L1(1.0)), rel=1e-12)
    found, wanted = (minimize(f, penalty=penalty, tol=1e-8) for f in (blocks, array))
    assert found.nit > 0
    assert found.finish.done
    assert found.gap <= 1e-8 * found.fun
    np.testing.assert_allclose(found.fun, wanted.fun, rtol=1e-10)


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
    runs = [minimize(losses.Squared(M, CODES, intercept=True), tol=1e-8) for M in (source(dense(A)), A)]
    assert all(run.success for run in runs)
    assert runs[0].fun == pytest.approx(runs[1].fun, rel=1e-10)


def test_residuals_are_made_only_when_asked_for(monkeypatch):
    from adagrad_diff.dask import _pass

    asked, real = [], _pass.FarPass.residuals
    monkeypatch.setattr(_pass.FarPass, "residuals", lambda *args: asked.append(real(*args)) or asked[-1])
    loss = LAD(source(dense(entries())), CODES, intercept=True)
    list(islice(iterate(loss, np.zeros((6, 2)), L1(0.01), AdaGradDiff(0.1)), 20))
    assert asked == []
    minimize(loss, penalty=L1(0.01), max_iter=70, finish=False, tol=1e-9, on_failure="ignore")
    assert asked
    assert len(asked) < 35  # not in every iteration
    assert all(r.shape == (60,) for r in asked)  # and of one trajectory


@pytest.fixture
def rounds(monkeypatch):
    """The folds that were made, as they were called."""
    found, one = [], Partitions._answers
    monkeypatch.setattr(Partitions, "_answers", lambda *args: found.append(args) or one(*args))
    return found


@pytest.mark.parametrize("kind", [losses.LAD, losses.Multinomial])
def test_an_iteration_is_one_round(kind, rounds):
    """For all trajectories at once; and x is there once, whatever the number of blocks."""
    loss, graphs = make(kind, source(dense(entries())), CODES, intercept=True), []
    real = loss.A._way.get
    loss.A._way.get = lambda graph, keys: graphs.append(graph) or real(graph, keys)
    run = iterate(loss, np.zeros((*loss.shape, 3)), L1(0.01), AdaGradDiff([0.1, 0.3, 1.0]))
    next(run)
    for _ in range(4):
        rounds.clear()
        graphs.clear()
        next(run)
        assert len(rounds) == len(graphs) == 1
        assert len({id(task[3]) for task in graphs[0].values()}) == 1  # what all tasks are called with


def test_rounds_of_many_classes(rounds):
    """Of the columns, at the start, a gradient for each point, the columns of the support, and three for the proof."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60_000, 9))
    loss = losses.Multinomial(source(da.from_array(A, chunks=(20_000, 9))), np.digitize(A[:, 0], [-0.5, 0.5]), intercept=True)
    rounds.clear()
    result = minimize(loss, penalty=L1(0.02), tol=1e-6)
    assert result.gap <= 1e-6 * result.fun
    assert result.finish.tries == 1
    assert len(rounds) <= 1 + 1 + (1 + result.finish.rounds) + 1 + 3


def test_rounds_of_a_smooth_loss(rounds):
    """Of the columns, at the start, one for each step of Newton's method, and two for the proof."""
    A = np.random.default_rng(0).standard_normal((60_000, 9))  # from here on ordinary sums are a proof
    b = np.sign(A @ np.arange(9.0) + 5 * np.random.default_rng(1).standard_normal(60_000))
    rows = source(da.from_array(A, chunks=(20_000, 9)))
    for intercept, more in ((False, 0), (True, 1)):  # for an intercept, the dual point is shifted
        loss = losses.Logistic(rows, b, intercept=intercept)
        rounds.clear()
        result = minimize(loss, penalty=Ridge(0.01), tol=1e-6)
        assert result.gap <= 1e-6 * result.fun
        assert len(rounds) == 1 + 1 + (1 + result.finish.rounds) + 2 + more
        rounds.clear()
        again = duality_gap(loss, Ridge(0.01), result.x)  # what was asked before is known
        assert again.gap <= 1e-6 * again.fun
        assert len(rounds) == more


def test_what_was_asked_before_is_told_again():
    """The same numbers, of the point that is asked for, with an axis of trajectories or without."""
    A, b = entries(), CODES.astype(float)
    rng, far, near = np.random.default_rng(2), LAD(source(dense(A)), b, intercept=True), LAD(A, b, intercept=True)
    points = rng.standard_normal((2, 6))
    for x in (points[0], points[0], points[0][:, None], points[1][:, None], points[1], np.stack(points, 1), points[0]):
        oracles = [loss.oracle(x) for loss in (far, near)]
        (f, g), (f2, g2) = ((oracle(x, g := np.empty_like(x)), g) for oracle in oracles)
        same((f, g), (f2, g2))
        assert oracles[0].r.shape == oracles[1].r.shape
        np.testing.assert_allclose(oracles[0].r, oracles[1].r, atol=1e-15)


def test_targets_are_left_with_their_blocks():
    A, b = source(sparse_rows(entries())), CODES.astype(float)
    loss = LAD(A, b)
    one, other = (loss.oracle(np.zeros(5))._pass._samples for _ in range(2))
    assert all(a is b for a, b in zip(one, other, strict=True))
    several = [LAD(A, b + k) for k in range(6)]
    values = [f.value_and_grad(np.ones(5))[0] for f in several * 2]
    assert values[:6] == values[6:] == [pytest.approx(LAD(entries(), b + k).value_and_grad(np.ones(5))[0]) for k in range(6)]
    twice = [LAD(A, loss.b, intercept=flag) for flag in (False, True)]
    for f in twice:
        f.b, f.weight = loss.b, loss.weight  # the same arrays, another loss
    x = np.ones(6)
    assert twice[0].value_and_grad(x[:5])[0] != twice[1].value_and_grad(x)[0]


def test_only_samples_near_their_kinks_and_columns_of_the_support_travel(monkeypatch):
    rng, travelled, ask = np.random.default_rng(0), [], Partitions._of_some

    def recorded(self, index, function, *args):
        answers = ask(self, index, function, *args)
        travelled.extend(answer.shape for answer in answers)
        return answers

    monkeypatch.setattr(Partitions, "_of_some", recorded)
    A = rng.standard_normal((20_000, 100))
    b = A[:, 0] - 2 * A[:, 1] + 0.1 * rng.standard_cauchy(20_000)
    near = minimize(LAD(A, b), penalty=L1(0.05), eta=0.1, max_iter=300).x
    far = finish(on_dask.LAD(da.from_array(A, chunks=(5000, 100)), b), L1(0.05), near, tol=1e-10)
    assert far.success
    assert travelled
    assert sum(rows for rows, _ in travelled) < 20_000 / 4
    assert max(columns for _, columns in travelled) < 100 / 4
