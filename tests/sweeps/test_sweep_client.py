"""Sweeps by a client: the bits of a sweep on one machine, also when workers die; checkpoints as on one machine."""

import os
import signal
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import numpy as np
import pytest

import checkpointing as t
from adagrad_diff import Interrupted, Status, named
from user_losses import Bowl
from waiting import wait_until

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl


class Client:
    """A cluster in threads, which counts, loses every so-manieth task, and may press Ctrl-C when it is handed task `press`."""

    def __init__(self, lose=0, press=0):
        self.pool, self.lose, self.press, self.tasks, self.scattered = (
            ThreadPoolExecutor(8),
            lose,
            press,
            0,
            0,
        )
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
        if self.tasks == self.press:
            signal.raise_signal(signal.SIGINT)
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


def test_the_same_bits():
    client = Client()
    assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, client=client)) == t.uninterrupted()
    assert client.scattered == 1
    assert client.most == 2  # as n_jobs says, and memory allows: not all that there are
    assert (
        t.digest(t.sweep(*t.problem(), **{**t.OPTIONS, "n_jobs": None}, client=client))
        == t.uninterrupted()
    )  # 2 threads


def test_an_executor_will_do():
    with ThreadPoolExecutor(2) as pool:
        assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, client=pool)) == t.uninterrupted()


def test_lost_tasks_are_handed_out_again():
    client = Client(lose=3)
    assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, client=client)) == t.uninterrupted()
    assert client.scattered > 1  # the data may be gone, too
    with pytest.raises(CancelledError):
        t.sweep(*t.problem(), **t.OPTIONS, client=Client(lose=1))  # nobody is there


def test_checkpoints(tmp_path, monkeypatch):
    """Begun on a cluster, crashed, gone on with here, and the other way round."""
    for first, second in ((Client(), None), (None, Client())):
        place = tmp_path / f"{id(first)}"
        with monkeypatch.context() as patch:
            t.crash_at(patch, 4)
            with pytest.raises(t.Crash):
                t.sweep(*t.problem(), **t.OPTIONS, checkpoint=place, client=first)
        assert list(place.glob("chunk-*.npz"))
        assert (
            t.digest(t.sweep(*t.problem(), **t.OPTIONS, checkpoint=place, client=second))
            == t.uninterrupted()
        )
        before = t.snapshot(place)
        client = Client()
        assert (
            t.digest(t.sweep(*t.problem(), **t.OPTIONS, checkpoint=place, client=client))
            == t.uninterrupted()
        )
        assert client.tasks == 0  # everything is there
        assert t.snapshot(place) == before


def test_ctrl_c(tmp_path, default_handler):
    with pytest.raises(
        Interrupted, match=r"trajectories are finished\. The same call with checkpoint="
    ) as caught:
        t.sweep(*t.problem(), **t.OPTIONS, checkpoint=tmp_path, client=Client(press=4))
    assert Status.INTERRUPTED in np.unique(caught.value.result.status)
    assert (
        t.digest(t.sweep(*t.problem(), **t.OPTIONS, checkpoint=tmp_path, client=Client()))
        == t.uninterrupted()
    )


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
    with pytest.raises(
        TypeError, match=r"The 'client' parameter of sweep must be a distributed\.Client"
    ):
        t.sweep(*t.problem(), client="tcp://scheduler:8786")


# ------------------------------------------------------------ Dask


@pytest.fixture(scope="module")
def dask():
    distributed = pytest.importorskip("distributed")
    here = os.pathsep.join([str(os.path.dirname(t.__file__)), os.environ.get("PYTHONPATH", "")])
    os.environ["PYTHONPATH"] = here  # so that workers find the problem
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.mark.slow
def test_on_dask(dask):
    assert t.digest(t.sweep(*t.problem(), **t.OPTIONS, client=dask)) == t.uninterrupted()


@pytest.mark.slow
def test_dask_workers_that_are_killed(dask, tmp_path):
    """All of them, with the data they hold: others take over, and the sweep ends with the same bits."""
    victims = list(dask.run(os.getpid).values())

    def problem(loss):
        return (
            named("loss", loss),
            None,
            [t.AdaGradDiff, t.AdaGrad],
            [0.1, 0.2],
            np.zeros((3, 2)),
            10,
        )

    def kill():
        wait_until((tmp_path / "begun").exists)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        (tmp_path / "go").touch()

    expected = t.sweep(*problem(Bowl()), n_jobs=2)
    killer = threading.Thread(target=kill)
    killer.start()
    result = t.sweep(
        *problem(t.Gated(tmp_path)), n_jobs=2, checkpoint=tmp_path / "kept", client=dask
    )
    killer.join()
    assert not {*victims} & {*dask.run(os.getpid).values()}
    np.testing.assert_array_equal(result.objective, expected.objective)
    assert not [
        path.name
        for path in (tmp_path / "kept").iterdir()
        if "progress" in path.name or "partial" in path.name
    ]
