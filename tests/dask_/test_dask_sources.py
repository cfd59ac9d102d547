"""What A may be, what is read of it and in which order it is added up, and what is wrong with it, in threads."""

from itertools import pairwise

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import adagrad_diff.dask as on_dask
from adagrad_diff import LAD, Squared, losses
from adagrad_diff.dask import source
from adagrad_diff.dask._tasks import Threads
from dask_data import CODES, dense, entries, sparse_rows
from loss_zoo import same

pytestmark = pytest.mark.peer
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
    found = pytest.importorskip("zarr").open(
        str(folder / "A.zarr"), mode="w", shape=A.shape, chunks=(13, 5), dtype="f8"
    )
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
    "sizes that are not known": lambda A, folder: dense(A)[dense(A)[:, 0] > 0],
    "a frame": lambda A, folder: frame(A),
    "a frame of which rows were chosen": lambda A, folder: frame(A)[frame(A).a > 0],
    "partitions without rows": lambda A, folder: frame(A).map_partitions(
        lambda part: part[part.index >= 20]
    ),
    "Float64": lambda A, folder: frame(A).astype("Float64"),
    "integers": lambda A, folder: (10 * dense(A)).astype(int),
    "single precision": lambda A, folder: dense(A).astype("f4"),
    "centered": lambda A, folder: dense(A) - dense(A).mean(axis=0),
    "persisted": lambda A, folder: dense(A).persist(scheduler="threads"),
    "mapped": mapped,
    "some columns of what is mapped": lambda A, folder: mapped(A, folder)[:, 1:],
    "mapped, columns first": columns_first,
    "mapped, rows from the last to the first": lambda A, folder: mapped(A, folder)[::-2],
    "mapped, and changed in memory": changed_here,
    "Zarr": zarr_array,
    "HDF5": hdf5,
    "Parquet": parquet,
}


@pytest.mark.parametrize("case", COLLECTIONS)
@pytest.mark.parametrize("persist", [True, False])
def test_collections(case, persist, tmp_path):
    given = COLLECTIONS[case](entries(), tmp_path)
    A = source(given, persist=persist)
    array = np.asarray(given.compute() if hasattr(given, "compute") else given, dtype=A.dtype)
    assert A.shape == array.shape
    assert A.dtype == (np.float32 if "single" in case else np.float64)
    blocks, wanted = (LAD(M, CODES[: len(array)], intercept=True) for M in (A, array))
    x = np.linspace(-1, 1, array.shape[1] + 1)
    same(
        blocks.value_and_grad(x),
        wanted.value_and_grad(x),
        rtol=1e-5 if A.dtype == np.float32 else 1e-12,
    )


@pytest.mark.parametrize("given", [mapped, columns_first])
def test_graphs_contain_the_place_of_a_mapped_array(given, tmp_path):
    """They do not contain its entries."""
    graphs = []

    def get(graph, keys, **options):
        graphs.append(graph)
        return dask.get(graph, keys)

    A = given(entries(9000), tmp_path)
    with dask.config.set(scheduler=get):
        for part in (A, A[3:], A[::-1], A[:, 1:], A.T[:3]):
            source(part, persist=False)
    assert max(len(cloudpickle.dumps(graph)) for graph in graphs) < 5000


def test_what_is_on_disk_has_a_name(tmp_path):
    """A fit with a checkpoint knows by it that it is the same."""
    one = hdf5(entries(), tmp_path)
    assert source(one).token == source(one.file["A"]).token
    assert (
        source(mapped(entries(), tmp_path)).token
        == source(np.load(tmp_path / "A.npy", mmap_mode="r")).token
    )


def test_what_is_asked_of_a_source():
    array, rng = entries(), np.random.default_rng(0)
    for chunks in (dense, sparse_rows):
        A, weight, x, r = (
            source(chunks(array)),
            rng.random(60),
            rng.standard_normal((5, 2)),
            rng.standard_normal(60),
        )
        A.dot(x, z := np.empty((60, 2)))
        np.testing.assert_allclose(z, array @ x, atol=1e-13)
        A.tdot(r, g := np.empty(5))
        np.testing.assert_allclose(g, array.T @ r, atol=1e-13)
        for found, wanted in zip(A.moments(weight)[:3], (array, array**2, array != 0), strict=True):
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


# ------------------------------------------------------------ the order of sums


def column_sums(block):
    return block.to_dense().sum(axis=0)


def in_eights(parts):
    """The twin: eight neighbours are added up from left to right, until one is left."""
    while len(parts) > 1:
        parts = [sum(parts[k + 1 : k + 8], parts[k]) for k in range(0, len(parts), 8)]
    return parts[0]


@pytest.mark.parametrize("blocks", [1, 2, 8, 9, 65])
def test_sums_are_made_in_a_fixed_order(blocks):
    A = (
        np.random.default_rng(0).standard_normal((150, 3))
        * 10.0 ** np.arange(-9, 6).repeat(10)[:, None]
    )
    cuts = np.linspace(0, 150, blocks + 1).astype(int)
    wanted = in_eights([A[lo:hi].sum(axis=0) for lo, hi in pairwise(cuts)])
    collection = da.from_array(A, chunks=(tuple(np.diff(cuts)), 3))
    for options in ({"scheduler": "sync"}, {"num_workers": 1}, {"num_workers": 4}):
        with dask.config.set(options):
            assert np.array_equal(source(collection).fold(column_sums), wanted)


def test_the_number_of_blas_threads_does_not_matter():
    limits = pytest.importorskip("threadpoolctl")
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((14_000, 150)), rng.standard_normal((150, 12))
    found = []
    for threads in (1, 2):
        with limits.threadpool_limits(threads, user_api="blas"):
            before = [library["num_threads"] for library in limits.threadpool_info()]
            loss = LAD(source(da.from_array(A, chunks=(7000, 150))), A[:, 0])
            found.append(loss.value_and_grad(x)[1])
            assert [library["num_threads"] for library in limits.threadpool_info()] == before
    assert np.array_equal(*found)


def firsts(block):
    return [(block.first, block.shape[0])]


def test_folds_that_are_no_sums():
    A = source(dense(entries()))
    assert A.fold(firsts, merge=lambda one, other: one + other) == [
        (0, 16),
        (16, 1),
        (17, 23),
        (40, 20),
    ]
    assert A.fold(lambda block, first: first.max(), along=(np.arange(60),), merge=max) == 59


# ------------------------------------------------------------ what is wrong is named


def with_nan():
    A = entries()
    A[20, 3] = np.nan
    return A


WRONG = {
    "NaN": (lambda: dense(with_nan()), r"^Block 2 of A contains nan at index \(3, 3\)"),
    "NaN, sparse": (
        lambda: sparse_rows(with_nan()),
        r"^Block 2 of A contains nan at index \(3, 3\)",
    ),
    "text": (
        lambda: frame(entries()).assign(t="x"),
        r"^Column 't' of A is of type .*: encode it as numbers, or drop it",
    ),
    "masked": (
        lambda: da.ma.masked_greater(da.from_array(entries(), chunks=(20, 5)), 2.5),
        r"^Block 2 of A has masked entries: ",
    ),
    "complex": (lambda: dense(entries()) * 1j, r"^A must be real numbers. Got dtype complex128"),
    "a vector": (
        lambda: da.ones(5),
        r"^A must be a Dask array \(samples, features\) .* of shape \(5,\) instead",
    ),
    "a series": (lambda: frame(entries()).a, r"^A must be a Dask array .* Got Series instead"),
    "a bag": (lambda: dask.delayed(1), r"^A must be a Dask array .* Got Delayed\w* instead"),
    "a list": (
        lambda: [[1.0]],
        r"^A must be a Dask array .* or an array on disk that is not empty. Got list instead",
    ),
    "no rows": (lambda: dense(entries())[:0], r"^A must have at least one sample"),
    "no rows left": (
        lambda: frame(entries())[frame(entries()).a > 99],
        r"^A must have at least one sample .* It has no rows",
    ),
    "columns differ": (
        lambda: da.concatenate(
            [da.from_delayed(dask.delayed(np.ones)((2, k)), (np.nan, 3), float) for k in (3, 4)],
            allow_unknown_chunksizes=True,
        ),
        r"the same ones in all blocks. Its blocks have \[3, 4\] columns",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_sentences(case):
    given, sentence = WRONG[case]
    for persist in (True, False):
        with pytest.raises(ValueError, match=sentence):
            source(given(), persist=persist)


def test_processes_that_get_all_data_in_each_pass():
    A = da.ones((20, 2), chunks=(10, 2))
    with dask.config.set(scheduler="processes"), pytest.warns(UserWarning, match="'processes'"):
        Threads()
    assert source(A).shape == (20, 2)


def test_other_sentences():
    A = dense(entries())
    with pytest.raises(
        TypeError,
        match=r"^A is a Dask Array: use adagrad_diff.dask.source\(A\), or the loss of the same name",
    ):
        Squared(A, CODES)
    with pytest.raises(
        TypeError, match=r"^A is a Dask DataFrame: use adagrad_diff.dask.source\(A\)"
    ):
        Squared(frame(entries()), CODES)
    with pytest.raises(ValueError, match=r"^b must have shape \(60,\)"):
        on_dask.Squared(A, da.zeros(59))
    with pytest.raises(ValueError, match=r"^b has masked entries"):
        on_dask.Squared(A, da.ma.masked_equal(da.arange(60, chunks=20), 7))
    with pytest.raises(TypeError, match=r"^'client' must be a distributed.Client. Got str instead"):
        source(A, client="tcp://127.0.0.1:8786")
    with pytest.raises(ValueError, match=r"Hinge needs labels -1 and \+1"):
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


def test_minibatches_need_rows_in_memory():
    with pytest.raises(
        TypeError, match="Minibatch needs the rows of A in memory, as an array or a SciPy matrix"
    ):
        losses.Minibatch(on_dask.Squared(dense(entries()), CODES), 4)
