"""A sweep that is killed, interrupted or fails goes on from its checkpoint, and gives the same bits."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import AdaGrad, AdaGradDiff, named, sweep
from adagrad_diff.sweeps import run as module
from checkpointing import OPTIONS, Crash, crash_at, digest, interrupt_after, problem, schedule, snapshot, uninterrupted
from user_losses import Bowl

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl

HERE = Path(__file__).parents[1] / "cases"  # where a process of its own finds the helpers


def test_what_is_written(tmp_path):
    directory = tmp_path / "a" / "new one"
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=directory)) == uninterrupted()
    names = sorted(path.name for path in directory.iterdir())
    manifest = json.loads((directory / "manifest.json").read_text())
    assert names == ["manifest.json", *(f"part-{k:04d}.npz" for k in range(len(manifest["plan"]))), "sweep.lock"]
    assert len(manifest["plan"]) > 6
    assert manifest["description"]["n_iter"] == 300


def test_what_is_finished_is_not_computed_again(tmp_path):
    counted = []

    def loss(x):
        counted.append(x.shape[1])
        return Bowl()(x)

    def run():
        return sweep(
            named("loss", loss), None, [AdaGradDiff, AdaGrad], [0.1, 0.2], np.zeros((3, 2)), 20, checkpoint=str(tmp_path)
        )

    first = run()
    counted.clear()
    before = snapshot(tmp_path)
    try:
        tmp_path.chmod(0o500)  # it can be read, and that is enough
        assert digest(run()) == digest(first)
    finally:
        tmp_path.chmod(0o700)
    assert counted == [2]  # the objective at the starts
    assert snapshot(tmp_path) == before


def test_the_plan_is_that_of_the_beginning(tmp_path, monkeypatch):
    """Also with more memory or other threads, the chunks stay as they were: so do the bits."""
    interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        sweep(*problem(), **OPTIONS, checkpoint=tmp_path)
    monkeypatch.undo()
    options = {"record": 7, "memory": "1GB", "n_jobs": 3, "progress": False, "label": "another"}
    assert digest(sweep(*problem(), **options, checkpoint=tmp_path)) == uninterrupted()


def test_fewer_threads_for_wide_chunks(tmp_path, monkeypatch):
    """A plan with wide chunks is continued with as many threads as the memory allows now."""
    active, most, lock = [0], [0], threading.Lock()

    def loss(x):
        with lock:
            active[0] += 1
            most[0] = max(most[0], active[0])
        time.sleep(1e-3)
        with lock:
            active[0] -= 1
        return Bowl()(x)

    arguments = named("loss", loss), None, schedule, [0.1, 0.2, 0.3, 0.4], np.zeros((3, 20)), 30
    interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        sweep(*arguments, checkpoint=tmp_path, memory="1GB", n_jobs=1)
    monkeypatch.undo()
    most[0] = 0
    sweep(*arguments, checkpoint=tmp_path, memory=80_000, n_jobs=4)
    assert most[0] == 1
    sweep(*arguments, memory="1GB", n_jobs=4)
    assert most[0] > 1


@pytest.mark.parametrize(("save", "n_iter"), [(30.0, 300), (0.003, 100), (0.0, 31)])
def test_interrupted_again_and_again(tmp_path, monkeypatch, save, n_iter):
    rng, expected = np.random.default_rng(), digest(sweep(*problem(n_iter), **OPTIONS))
    monkeypatch.setattr(module, "SAVE", save)
    interruptions = 0
    while interruptions < 1000:
        interrupt_after(monkeypatch, rng.integers(0, 4))
        try:
            result = sweep(*problem(n_iter), **OPTIONS, checkpoint=tmp_path)
            break
        except KeyboardInterrupt:
            interruptions += 1
            assert not [thread for thread in threading.enumerate() if thread.name.startswith("adagrad_diff.sweep")]
    assert interruptions > 2
    assert digest(result) == expected
    assert not list(tmp_path.glob("*.progress.npz")) + list(tmp_path.glob("*.partial"))


def test_an_interruption_loses_nothing(tmp_path, monkeypatch):
    """What runs is kept when it stops, although it is not time yet."""

    def slow(x):
        time.sleep(1e-3)
        return Bowl()(x)

    arguments = named("slow", slow), None, [AdaGradDiff, AdaGrad], [0.1, 0.2], np.zeros((3, 2)), 10_000
    interrupt_after(monkeypatch, 20)
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        sweep(*arguments, n_jobs=2, checkpoint=tmp_path)
    assert time.perf_counter() - begin < 5.0
    paths = sorted(tmp_path.glob("part-*.progress.npz"))
    assert len(paths) == 2
    for path in paths:
        with np.load(path) as file:
            record, n = file["objective"], file["state.n"]
        assert n.min() == n.max() > 3
        assert np.isfinite(record[: n[0]]).all()
        assert np.isnan(record[n[0] :]).all()


def test_interrupted_before_all_chunks_are_known(tmp_path, monkeypatch):
    calls, submit = [], ThreadPoolExecutor.submit

    def slow(x):
        calls.append(1)
        time.sleep(1e-3)
        return Bowl()(x)

    def interrupted(pool, *args):
        if len(calls) > 1:
            raise KeyboardInterrupt
        future = submit(pool, *args)
        while len(calls) <= 1:
            time.sleep(1e-3)
        return future

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    arguments = named("slow", slow), None, [AdaGradDiff, AdaGrad], [0.1, 0.2], np.zeros((3, 2)), 2000
    with pytest.raises(KeyboardInterrupt):
        sweep(*arguments, n_jobs=2, checkpoint=tmp_path)
    assert len(calls) < 1000


@pytest.mark.parametrize("before", [True, False])
def test_a_crash_at_any_file(tmp_path, monkeypatch, before):
    """Files appear one after another: a crash between any two of them leaves something that can be continued."""
    crashes, expected = 0, digest(sweep(*problem(61), **OPTIONS))
    for moment in [*range(1, 20), 50, 10**9]:
        with monkeypatch.context() as patch:
            patch.setattr(module, "SAVE", 0.0)
            crash_at(patch, moment, before=before)
            try:
                result = sweep(*problem(61), **OPTIONS, checkpoint=tmp_path)
            except Crash:
                crashes += 1
    assert crashes == 20
    assert digest(result) == expected


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[1])
import checkpointing as t

t.sweep(*t.problem(800), record=250, n_jobs=2, checkpoint=sys.argv[2])
print("finished")
"""


@pytest.mark.usefixtures("default_handler")
def test_ctrl_c(tmp_path):
    run = [sys.executable, "-c", INTERRUPTED, str(HERE), str(tmp_path)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(6000):  # until it has begun
            if (tmp_path / "manifest.json").exists() or process.poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(0.15)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out == ""
    assert process.returncode != 0
    assert re.search(r"Interrupted: The sweep was interrupted: \d+ of 36 trajectories .* goes on from here\.$", err.rstrip())
    assert list(tmp_path.glob("part-*.progress.npz"))
    assert not list(tmp_path.glob("*.partial"))
    continued = sweep(*problem(800), record=250, n_jobs=2, checkpoint=tmp_path)
    assert digest(continued) == digest(sweep(*problem(800), record=250, n_jobs=2))
