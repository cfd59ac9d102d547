"""Sweeps by a client: the bits of a sweep on one machine, also when workers die; checkpoints as on one machine."""

import os
import pickle
import signal
import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

import checkpointing as t
from adagrad_diff import Interrupted, Status
from adagrad_diff.common import cluster
from adagrad_diff.common.threads import one_blas_thread
from adagrad_diff.sweeps import run as module

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl


class Client:
    """A cluster in threads, which counts, and loses every so-manieth task."""

    def __init__(self, lose=0):
        self.pool, self.lose, self.tasks, self.scattered = ThreadPoolExecutor(8), lose, 0, 0
        self.running, self.most, self.lock = 0, 0, threading.Lock()

    def scatter(self, parts, broadcast, hash):
        assert isinstance(parts, list)
        assert broadcast
        self.scattered += 1
        return list(parts)

    def nthreads(self):
        return {"one": 1, "other": 1}

    def submit(self, function, *arguments, pure):
        assert not pure
        self.tasks += 1
        if self.lose and self.tasks % self.lose == 0:
            future = Future()
            future.set_exception(CancelledError())
            return future
        return self.pool.submit(self.work, function, *arguments)

    def work(self, function, *arguments):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            return function(*arguments)
        finally:
            with self.lock:
                self.running -= 1


@pytest.fixture
def slices(monkeypatch):
    """Tasks say how far they are after every few iterations."""
    monkeypatch.setattr(module, "SAVE", 0.002)
    monkeypatch.setattr(os, "fsync", lambda file: None)


def test_the_same_bits(slices):
    client = Client()
    assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, client=client)) == t.uninterrupted()
    assert client.scattered == 1
    assert client.most == 2  # as n_jobs says, and memory allows: not all that there are
    assert client.tasks > len(t.uninterrupted())  # several for each chunk
    assert t.digest(t.sweep(*t.problem(), **{**t.OPTIONS, "n_jobs": None}, client=client)) == t.uninterrupted()  # 2 threads


def test_an_executor_will_do():
    with ThreadPoolExecutor(2) as pool:
        assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, client=pool)) == t.uninterrupted()


def test_lost_tasks_are_handed_out_again(slices):
    client = Client(lose=3)
    assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, client=client)) == t.uninterrupted()
    assert client.scattered > 1  # the data may be gone, too
    with pytest.raises(CancelledError):
        t.sweep(*t.problem(), **t.OPTIONS, client=Client(lose=1))  # nobody is there


def test_checkpoints(slices, tmp_path, monkeypatch):
    """Begun on a cluster, crashed, gone on with here, and the other way round."""
    for first, second in ((Client(), None), (None, Client()), (Client(), Client())):
        place = tmp_path / f"{id(first)}"
        with monkeypatch.context() as patch:
            t.crash_at(patch, 9)
            with pytest.raises(t.Crash):
                t.sweep(*t.problem(), **t.OPTIONS, checkpoint=place, client=first)
        assert list(place.glob("part-*.progress.npz"))
        assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, checkpoint=place, client=second)) == t.uninterrupted()
        before = t.snapshot(place)
        client = Client()
        assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, checkpoint=place, client=client)) == t.uninterrupted()
        assert client.tasks == 0  # everything is there
        assert t.snapshot(place) == before


def test_ctrl_c(slices, tmp_path, monkeypatch):
    client = Client()
    completed, calls = cluster.Cluster.completed, []

    def interrupted(self, seconds):
        calls.append(1)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return completed(self, seconds)

    with monkeypatch.context() as patch:
        patch.setattr(cluster.Cluster, "completed", interrupted)
        with pytest.raises(Interrupted, match=r"trajectories are finished\. The same call with checkpoint=") as caught:
            t.sweep(*t.problem(), **t.OPTIONS, checkpoint=tmp_path, client=client)
    status = np.unique(caught.value.result.status)
    assert Status.INTERRUPTED in status
    assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, checkpoint=tmp_path, client=client)) == t.uninterrupted()


def test_errors_are_those_of_the_work():
    def wrong(x):
        raise ZeroDivisionError("in the loss")

    calls = []

    def later(x):
        calls.append(1)
        return wrong(x) if len(calls) > 3 else ((x * x).sum(axis=0), 2 * x)

    with pytest.raises(ZeroDivisionError, match="in the loss") as caught:
        t.sweep(later, None, t.AdaGrad, [0.1], np.ones((3, 2)), 20, client=Client())
    assert "rule 'AdaGrad' of the sweep" in caught.value.__notes__[0]


def test_what_is_no_client():
    with pytest.raises(TypeError, match=r"The 'client' parameter of sweep must be a distributed\.Client"):
        t.sweep(*t.problem(), client="tcp://scheduler:8786")


def test_one_blas_thread_for_all_who_want_it():
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = [library.get_num_threads() for library in libraries]
    with one_blas_thread():
        with one_blas_thread():
            pass
        assert {library.get_num_threads() for library in libraries} <= {1}  # the inner one has not lifted it
    assert [library.get_num_threads() for library in libraries] == before


# ------------------------------------------------------------ Dask


@pytest.fixture(scope="module")
def dask():
    distributed = pytest.importorskip("distributed")
    here = os.pathsep.join([str(os.path.dirname(t.__file__)), os.environ.get("PYTHONPATH", "")])
    os.environ["PYTHONPATH"] = here  # so that workers find the problem
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        yield client


def test_on_dask(dask):
    assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, client=dask)) == t.uninterrupted()


def test_path_cv_on_dask(dask):
    sklearn = pytest.importorskip("adagrad_diff.sklearn")
    A, b = t.A, t.REAL
    here, there = (sklearn.PathCV(sklearn.Lasso(), n_alphas=5, cv=3, client=client) for client in (None, dask))
    assert clone(there).client is dask
    here.fit(A, b)
    there.fit(A, b)
    np.testing.assert_array_equal(there.score_path_, here.score_path_)
    np.testing.assert_array_equal(there.coef_, here.coef_)
    assert pickle.loads(pickle.dumps(there)).alpha_ == here.alpha_


def test_dask_workers_that_are_killed(dask, monkeypatch, tmp_path):
    """All of them, with the data they hold: others take over, and the sweep ends with the same bits."""
    monkeypatch.setattr(module, "SAVE", 0.02)
    victims, moments = list(dask.run(os.getpid).values()), []

    def kill():
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        moments.append(time.perf_counter())

    timer = threading.Timer(0.2, kill)
    timer.start()
    result = t.sweep(*t.problem(), **t.OPTIONS, checkpoint=tmp_path, client=dask)
    assert moments
    assert moments[0] < time.perf_counter()  # while it was running
    assert not {*victims} & {*dask.run(os.getpid).values()}
    assert t.digest(result) == t.uninterrupted()
    assert not [path.name for path in tmp_path.iterdir() if "progress" in path.name or "partial" in path.name]
