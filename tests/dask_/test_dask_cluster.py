"""On workers: the bits of the threads, also when a worker is killed in the middle of a run."""

import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import dask.array as da
import distributed
import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    Interrupted,
    Logistic,
    Multinomial,
    duality_gap,
    iterate,
    minimize,
    sweep,
)
from adagrad_diff.dask import source
from adagrad_diff.losses import LinearModel
from adagrad_diff.rules import AdaGradDiff
from loss_zoo import make, same

pytestmark = [pytest.mark.peer, pytest.mark.slow]
CHUNKS = (40, 60, 10, 90, 25, 25, 30, 12, 8)  # nine: more than are added up at once


def entries():
    A = np.random.default_rng(0).standard_normal((300, 6))
    A[np.abs(A) < 0.4] = 0.0
    return A


CODES = np.random.default_rng(1).integers(0, 11, 300)
COLLECTIONS = {
    "dense": lambda: da.from_array(entries(), chunks=(CHUNKS, 6)),
    "sparse": lambda: da.from_array(entries(), chunks=(CHUNKS, 6)).map_blocks(
        sparse.csr_array, meta=sparse.csr_array((0, 0))
    ),
}


def answers(A, proofs=True):
    """What is asked for in an iteration, of one trajectory and of many, in a certificate and in a finish."""
    found = []
    for kind in (LAD, Multinomial):
        loss = make(kind, A, CODES, intercept=True, sample_weight=True)
        for batch in ((), (12,)):
            x = np.random.default_rng(2).standard_normal((*loss.shape, *batch))
            found += loss.value_and_grad(x)
    loss = make(LAD, A, CODES, intercept=True)
    state = list(islice(iterate(loss, np.zeros((7, 2)), L1(0.01), AdaGradDiff(0.1)), 3))[-1]
    found += [state.x, state.g, state.f]
    if not proofs:
        return found
    result = minimize(make(Logistic, A, CODES, intercept=True), penalty=L1(0.02), tol=1e-6)
    return [
        *found,
        duality_gap(loss, L1(0.01), state.x[:, 0]).bound,
        result.x,
        result.fun,
        result.gap,
    ]


@pytest.mark.parametrize("case", COLLECTIONS)
def test_same_chunks_same_bits(case, client):
    wanted = answers(source(COLLECTIONS[case]()))
    for one, other in zip(answers(entries(), proofs=False), wanted, strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    one_thread = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with one_thread, distributed.Client(one_thread, set_as_default=False) as alone:
        for workers, proofs in ((client, case == "dense"), (alone, False)):
            found = answers(source(COLLECTIONS[case](), client=workers), proofs)
            assert all(
                np.array_equal(one, other)
                for one, other in zip(found, wanted[: len(found)], strict=True)
            )


def test_the_current_client_is_found_and_blocks_are_read_again(client):
    A = COLLECTIONS["dense"]() - COLLECTIONS["dense"]().mean(
        axis=0
    )  # so that blocks have tasks in common
    with client.as_current():
        kept, read = (source(A, persist=flag) for flag in (True, False))
    assert kept.overhead == read.overhead > source(A).overhead
    assert len(client.who_has()) >= len(CHUNKS)  # Those of the first source stay on the workers.
    x = np.ones(6)
    wanted = LAD(entries() - entries().mean(axis=0), CODES).value_and_grad(x)
    for found in (kept, read):
        same(LAD(found, CODES).value_and_grad(x), wanted)


def test_a_large_x_is_sent_once(client):
    features = 40_000  # a packet of more than is sent with each task
    A = sparse.random_array(
        (300, features), density=1e-3, format="csr", rng=np.random.default_rng(0)
    )
    blocks = da.from_array(A.toarray(), chunks=(CHUNKS, features)).map_blocks(
        sparse.csr_array, meta=sparse.csr_array((0, 0))
    )
    x = np.linspace(-1, 1, features)
    same(
        LAD(source(blocks, client=client), CODES).value_and_grad(x), LAD(A, CODES).value_and_grad(x)
    )


def test_a_loss_of_the_users_own(client):
    """Its scalar function is sent to the workers, because no module contains it."""

    class Squares(LinearModel):
        @staticmethod
        def scalar(z, b, theta):
            return (z - b) ** 2, 2.0 * (z - b)

    A, x, g = entries(), np.ones(6), np.empty(6)
    oracle = Squares(source(da.from_array(A), client=client), CODES).oracle(x)
    for _ in range(3):
        same((oracle(x, g), g), (np.mean((A @ x - CODES) ** 2), 2.0 * A.T @ (A @ x - CODES) / 300))


def test_files_that_are_open(client, tmp_path):
    """What cannot be named by its content: Dask computes it, and so do we."""
    file = pytest.importorskip("h5py").File(tmp_path / "A.h5", "w")
    file["A"] = entries()
    file.close()
    x = np.ones(6)
    with pytest.importorskip("h5py").File(tmp_path / "A.h5", "r") as file:
        for given in (file["A"], da.from_array(file["A"], chunks=(50, 6), name=False)):
            same(
                LAD(source(given, client=client), CODES).value_and_grad(x),
                LAD(entries(), CODES).value_and_grad(x),
            )


def test_a_sweep_of_what_is_on_workers(client):
    pytest.importorskip("xarray")
    loss, x0s = LAD(source(COLLECTIONS["dense"](), client=client), CODES), np.zeros((6, 2))
    call = (L1(0.01), AdaGradDiff, [0.1, 1.0], x0s, 3)
    there, here = (sweep(f, *call, progress=False) for f in (loss, LAD(entries(), CODES)))
    np.testing.assert_allclose(there.objective, here.objective, rtol=1e-12)
    with pytest.raises(
        ValueError, match=r"^The data of this loss are on workers already, .*: leave out 'client'"
    ):
        sweep(loss, *call, progress=False, client=client)


def test_an_error_of_a_worker_is_told_here(client):
    A = entries()
    A[123, 4] = np.inf
    with pytest.raises(ValueError, match=r"^Block 3 of A contains inf at index \(13, 4\)"):
        source(da.from_array(A, chunks=(CHUNKS, 6)), client=client)


@pytest.mark.parametrize("persist", [True, False])
def test_a_worker_is_killed(persist, client):
    client.wait_for_workers(2)
    wanted = minimize(
        LAD(source(COLLECTIONS["dense"]()), CODES), penalty=L1(0.01), eta=0.1, max_iter=8
    )
    before = client.run(os.getpid)
    killed = []

    def kill(state):
        if state.nit == 3:
            killed.append(max(before.values()))
            os.kill(killed[0], signal.SIGKILL)

    loss = LAD(source(COLLECTIONS["dense"](), client=client, persist=persist), CODES)
    found = minimize(loss, penalty=L1(0.01), eta=0.1, max_iter=8, callback=kill)
    client.wait_for_workers(2)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    assert found.nit == 8
    assert np.array_equal(found.x, wanted.x)
    assert found.fun == wanted.fun


@pytest.mark.parametrize(
    "options", [{"eta": 0.1}, {"finish": False}, {"eta": 0.1, "stop": "gap"}], ids=str
)
def test_a_client_that_is_closed_ends_the_run_with_its_result(options):
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        loss = LAD(source(COLLECTIONS["dense"](), client=client), CODES)
        close = lambda state: client.close() if state.nit == 5 else None
        with pytest.raises(Interrupted) as caught:
            minimize(loss, penalty=L1(0.01), tol=1e-9, max_iter=50, callback=close, **options)
    result = caught.value.result
    assert result.nit == 5
    assert result.fun_best <= LAD(entries(), CODES).value_and_grad(np.zeros(6))[0]


RUNS = {
    "given": {"eta": 0.1, "max_iter": 12},
    "race": {"finish": False, "tol": 1e-12, "max_iter": 12, "on_failure": "ignore"},
}
KILLED = """
import os, signal, sys
import distributed
import test_dask_cluster as t

def kill(state):
    if state.nit == 7:
        os.kill(os.getpid(), signal.SIGKILL)

with distributed.Client(sys.argv[1]) as client:
    t.kept(client, sys.argv[2], sys.argv[3], callback=kill)
"""


def kept(client, case, path, **more):
    loss = LAD(source(COLLECTIONS["dense"](), client=client), CODES, intercept=True)
    return minimize(loss, penalty=L1(0.01), **RUNS[case], checkpoint=path, every=0.0, **more)


@pytest.mark.parametrize("case", RUNS)
def test_a_client_is_killed(case, client, tmp_path):
    """Its run is gone on with from another process, and ends with the bits of one that nobody has killed."""
    path, here = tmp_path / "run.npz", Path(__file__).parent
    places = os.pathsep.join(
        [str(here), str(here.parent / "cases"), os.environ.get("PYTHONPATH", "")]
    )
    command = [sys.executable, "-c", KILLED, client.scheduler.address, case, str(path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": places},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = []
    found = kept(client, case, path, callback=lambda state: left.append(state.nit))
    assert left == list(range(left[0], 13))
    assert 7 <= left[0] <= 8
    wanted = kept(client, case, tmp_path / "whole.npz")
    assert all(np.array_equal(found[name], wanted[name]) for name in ("x", "fun", "x_avg", "nit"))
    assert np.array_equal(found.history.objective, wanted.history.objective)
