"""Losses over Dask collections, in threads: answers are those of the array in memory."""

from itertools import islice, pairwise

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import adagrad_diff.dask as on_dask
from adagrad_diff import L1, LAD, Quadratic, Ridge, Squared, critical_lam, duality_gap, finish, iterate, losses, minimize
from adagrad_diff.dask import source
from adagrad_diff.dask._source import Partitions
from adagrad_diff.rules import AdaGradDiff
from looping import looped
from loss_zoo import LINEAR, PARAMETER, TERMS, make, named, same, targets, weights

pytestmark = pytest.mark.peer
CUTS = (16, 1, 23, 20)
CODES = np.arange(60) * 7 % 11


def entries(samples=60, features=5):
    A = np.random.default_rng(0).standard_normal((samples, features))
    A[np.abs(A) < 0.4] = 0.0
    return A


def dense(A, chunks=CUTS):
    return da.from_array(A, chunks=(chunks, (2, A.shape[1] - 2)))


def sparse_rows(A, chunks=CUTS):
    """Chunks in three formats of SciPy's, one after the other."""
    kinds = (sparse.csr_array, sparse.csc_array, sparse.coo_array)
    blocks = [
        da.from_delayed(dask.delayed(kinds[k % 3])(A[lo:hi]), (hi - lo, A.shape[1]), A.dtype, meta=sparse.csr_array((0, 0)))
        for k, (lo, hi) in enumerate(pairwise(np.cumsum([0, *chunks])))
    ]
    return da.concatenate(blocks)


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


# ------------------------------------------------------------ what A may be


def frame(A):
    return dd.from_pandas(pd.DataFrame(A, columns=list("abcde")), npartitions=4)


def mapped(A, folder):
    np.save(folder / "A.npy", A)
    return np.load(folder / "A.npy", mmap_mode="r")


def columns_first(A, folder):
    np.save(folder / "A.npy", np.asfortranarray(A))
    return np.load(folder / "A.npy", mmap_mode="r")


def changed_here(A, folder):
    """What is mapped as copy-on-write may be changed, and the file is not."""
    mapped(A, folder)
    found = np.load(folder / "A.npy", mmap_mode="c")
    found -= found.mean(axis=0)
    return found


def zarr_array(A, folder):
    found = pytest.importorskip("zarr").open(str(folder / "A.zarr"), mode="w", shape=A.shape, chunks=(13, 5), dtype="f8")
    found[:] = A
    return found


def hdf5(A, folder):
    with pytest.importorskip("h5py").File(folder / "A.h5", "w") as file:
        file["A"] = A
    return pytest.importorskip("h5py").File(folder / "A.h5", "r")["A"]


def parquet(A, folder):
    pytest.importorskip("pyarrow")
    pd.DataFrame(A, columns=list("abcde")).to_parquet(folder / "A.parquet")
    return dd.read_parquet(folder / "A.parquet")


COLLECTIONS = {
    "uneven chunks, two of columns": lambda A, folder: dense(A),
    "one chunk": lambda A, folder: da.from_array(A),
    "sizes that are not known": lambda A, folder: dense(A)[dense(A)[:, 0] > 0],
    "a frame": lambda A, folder: frame(A),
    "a frame of which rows were chosen": lambda A, folder: frame(A)[frame(A).a > 0],
    "partitions without rows": lambda A, folder: frame(A).map_partitions(lambda part: part[part.index >= 20]),
    "values of a frame": lambda A, folder: frame(A).values,
    "Float64": lambda A, folder: frame(A).astype("Float64"),
    "integers": lambda A, folder: (10 * dense(A)).astype(int),
    "single precision": lambda A, folder: dense(A).astype("f4"),
    "a frame in single precision": lambda A, folder: frame(A).astype("f4"),
    "centered": lambda A, folder: dense(A) - dense(A).mean(axis=0),
    "persisted": lambda A, folder: dense(A).persist(scheduler="threads"),
    "mapped": mapped,
    "a part of what is mapped": lambda A, folder: mapped(A, folder)[7:],
    "some columns of what is mapped": lambda A, folder: mapped(A, folder)[:, 1:],
    "mapped, columns first": columns_first,
    "mapped, rows from the last to the first": lambda A, folder: mapped(A, folder)[::-2],
    "mapped, and changed in memory": changed_here,
    "Zarr": zarr_array,
    "from_zarr": lambda A, folder: da.from_zarr(zarr_array(A, folder)),
    "HDF5": hdf5,
    "Parquet": parquet,
}


@pytest.mark.parametrize("case", COLLECTIONS)
@looped("persist", [None, True, False])
def test_collections(case, persist, tmp_path):
    given = COLLECTIONS[case](entries(), tmp_path)
    A = source(given, persist=persist)
    array = np.asarray(given.compute() if hasattr(given, "compute") else given, dtype=A.dtype)
    assert A.shape == array.shape
    assert A.dtype == (np.float32 if "single" in case else np.float64)
    blocks, wanted = (LAD(M, CODES[: len(array)], intercept=True) for M in (A, array))
    x = np.linspace(-1, 1, array.shape[1] + 1)
    same(blocks.value_and_grad(x), wanted.value_and_grad(x), rtol=1e-5 if A.dtype == np.float32 else 1e-12)


def test_of_what_is_mapped_only_the_place_is_sent(tmp_path):
    from adagrad_diff.dask._rows import parts

    for given in (mapped, columns_first):
        A = given(entries(9000), tmp_path)
        for part in (A, A[3:], A[::-1], A[:, 1:], A.T[:3]):
            assert len(cloudpickle.dumps(parts(part, "A").graph)) < 2000


def test_what_is_on_disk_has_a_name(tmp_path):
    """A fit with a checkpoint knows by it that it is the same."""
    one = hdf5(entries(), tmp_path)
    assert source(one).token == source(one.file["A"]).token
    assert source(mapped(entries(), tmp_path)).token == source(np.load(tmp_path / "A.npy", mmap_mode="r")).token


def test_what_is_asked_of_a_source():
    array, rng = entries(), np.random.default_rng(0)
    for chunks in (dense, sparse_rows):
        A, weight, x, r = source(chunks(array)), rng.random(60), rng.standard_normal((5, 2)), rng.standard_normal(60)
        A.dot(x, z := np.empty((60, 2)))
        np.testing.assert_allclose(z, array @ x, atol=1e-13)
        A.tdot(r, g := np.empty(5))
        np.testing.assert_allclose(g, array.T @ r, atol=1e-13)
        for found, wanted in zip(A.moments(weight), (array, array**2, array != 0), strict=True):
            np.testing.assert_allclose(found, weight @ wanted, rtol=1e-13)
        np.testing.assert_allclose(A.column_sizes(weight), weight @ np.abs(array), rtol=1e-13)
        index = np.array([3, 4, 17, 40, 59])
        for part in (index, index[:1], index[:0]):
            assert np.array_equal(A.rows(part).to_dense(), array[part])
        assert np.array_equal(A.to_dense(), array)
        assert A.largest() == np.abs(array).max()
        assert A.size == (array.size if chunks is dense else np.count_nonzero(array))
        assert np.array_equal(np.vstack([block.to_dense() for block in A.blocks()]), array)
        assert [block.first for block in A.blocks()] == A.cuts[:-1] == [0, 16, 17, 40]


def test_a_quadratic():
    Q = np.exp(-np.abs(np.subtract.outer(np.arange(20), np.arange(20))) / 3.0)
    c, x = np.sin(np.arange(20.0)), np.linspace(-1, 1, 20)
    blocks, array = Quadratic(source(da.from_array(Q, chunks=(7, 20))), c), Quadratic(Q, c)
    same(blocks.value_and_grad(x), array.value_and_grad(x))
    assert blocks.skew == array.skew
    assert duality_gap(blocks, L1(0.1), x).gap == pytest.approx(duality_gap(array, L1(0.1), x).gap)


# ------------------------------------------------------------ the order of sums


def column_sums(block):
    return block.to_dense().sum(axis=0)


def in_eights(parts):
    """The twin: eight neighbours are added up from left to right, until one is left."""
    while len(parts) > 1:
        parts = [sum(parts[k + 1 : k + 8], parts[k]) for k in range(0, len(parts), 8)]
    return parts[0]


@pytest.mark.parametrize("blocks", [1, 2, 8, 9, 64, 65, 150])
def test_sums_are_made_in_a_fixed_order(blocks):
    A = np.random.default_rng(0).standard_normal((150, 3)) * 10.0 ** np.arange(-9, 6).repeat(10)[:, None]
    cuts = np.linspace(0, 150, blocks + 1).astype(int)
    wanted = in_eights([A[lo:hi].sum(axis=0) for lo, hi in pairwise(cuts)])
    collection = da.from_array(A, chunks=(tuple(np.diff(cuts)), 3))
    for options in ({"scheduler": "sync"}, {"num_workers": 1}, {"num_workers": 4}):
        with dask.config.set(options):
            assert np.array_equal(source(collection).fold(column_sums), wanted)


def test_threads_of_blas_do_not_count():
    """Nor does their number afterwards."""
    limits = pytest.importorskip("threadpoolctl")
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((14_000, 150)), rng.standard_normal((150, 12))
    loss, found = LAD(source(da.from_array(A, chunks=(7000, 150))), A[:, 0]), []
    for threads in (1, 2):
        with limits.threadpool_limits(threads, user_api="blas"):
            before = [library["num_threads"] for library in limits.threadpool_info()]
            found.append(loss.value_and_grad(x)[1])
            loss.A._samples.clear()  # so that nothing is remembered
            assert [library["num_threads"] for library in limits.threadpool_info()] == before
    assert np.array_equal(*found)


def firsts(block):
    return [(block.first, block.shape[0])]


def test_folds_that_are_no_sums():
    A = source(dense(entries()))
    assert A.fold(firsts, merge=lambda one, other: one + other) == [(0, 16), (16, 1), (17, 23), (40, 20)]
    assert A.fold(lambda block, first: first.max(), along=(np.arange(60),), merge=max) == 59


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


# ------------------------------------------------------------ what is wrong is named


def with_nan():
    A = entries()
    A[20, 3] = np.nan
    return A


WRONG = {
    "NaN": (lambda: dense(with_nan()), r"^Block 2 of A contains nan at index \(3, 3\)"),
    "NaN, sparse": (lambda: sparse_rows(with_nan()), r"^Block 2 of A contains nan at index \(3, 3\)"),
    "text": (lambda: frame(entries()).assign(t="x"), r"^Column 't' of A is of type .*: encode it as numbers, or drop it"),
    "masked": (
        lambda: da.ma.masked_greater(da.from_array(entries(), chunks=(20, 5)), 2.5),
        r"^Block 2 of A has 3 masked entries: ",
    ),
    "complex": (lambda: dense(entries()) * 1j, r"^A must be real numbers. Got dtype complex128"),
    "a vector": (lambda: da.ones(5), r"^A must be a Dask array \(samples, features\) .* of shape \(5,\) instead"),
    "a series": (lambda: frame(entries()).a, r"^A must be a Dask array .* Got Series instead"),
    "a bag": (lambda: dask.delayed(1), r"^A must be a Dask array .* Got Delayed\w* instead"),
    "a list": (lambda: [[1.0]], r"^A must be a Dask array .* or an array on disk. Got list instead"),
    "no rows": (lambda: dense(entries())[:0], r"^A must have at least one sample"),
    "no rows left": (lambda: frame(entries())[frame(entries()).a > 99], r"^A must have at least one sample .* It has no rows"),
    "columns differ": (
        lambda: da.concatenate(
            [da.from_delayed(dask.delayed(np.ones)((2, k)), (np.nan, 3), float) for k in (3, 4)], allow_unknown_chunksizes=True
        ),
        r"the same ones in all blocks. Its blocks have \[3, 4\] columns",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@looped("persist", [True, False])
def test_sentences(case, persist):
    given, sentence = WRONG[case]
    with pytest.raises(ValueError, match=sentence):
        source(given(), persist=persist)


def test_other_sentences():
    A = dense(entries())
    with pytest.raises(
        TypeError, match=r"^A is a Dask Array: take adagrad_diff.dask.source\(A\), or the loss of the same name"
    ):
        Squared(A, CODES)
    with pytest.raises(TypeError, match=r"^A is a Dask DataFrame: take adagrad_diff.dask.source\(A\)"):
        Squared(frame(entries()), CODES)
    with pytest.raises(ValueError, match=r"^b must have shape \(60,\)"):
        on_dask.Squared(A, da.zeros(59))
    with pytest.raises(ValueError, match=r"^b has 1 masked entry"):
        on_dask.Squared(A, da.ma.masked_equal(da.arange(60, chunks=20), 7))
    with pytest.raises(TypeError, match=r"^'client' must be a distributed.Client. Got str instead"):
        source(A, client="tcp://127.0.0.1:8786")
    with pytest.raises(ValueError, match=r"^Hinge needs labels -1 and \+1 in b"):
        on_dask.Hinge(A, da.zeros(60))
    with pytest.raises(AttributeError, match="has no attribute 'KernelSVC'"):
        _ = on_dask.KernelSVC
    assert source(given := source(A)) is given


def test_only_the_blocks_that_are_needed_are_read():
    read = []

    def rows(block_info=None):
        read.append(block_info[None]["chunk-location"][0])
        return np.ones((10, 3))

    A = da.map_blocks(rows, chunks=((10,) * 12, (3,)), dtype=float, meta=np.ones((0, 0)))
    again, kept = source(A, persist=False), source(A, persist=True)
    assert sorted(read) == sorted([*range(12), *range(12)])
    read.clear()
    again.rows(np.array([5, 57, 58]))
    assert sorted(read) == [0, 5]
    again.fold(column_sums)
    assert sorted(read[2:]) == list(range(12))
    read.clear()
    kept.rows(np.array([5, 57]))
    kept.fold(column_sums)
    assert read == []


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


def test_minibatches_need_rows_in_memory():
    with pytest.raises(TypeError, match="Minibatch needs the rows of A in memory, as an array or a SciPy matrix"):
        losses.Minibatch(on_dask.Squared(dense(entries()), CODES), 4)
