"""Ctrl-C in a sweep: it ends as Interrupted, with what is there; nothing is swallowed and no checkpoint is damaged."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import AdaGrad, AdaGradDiff, Interrupted, Status, named, sweep
from adagrad_diff.sweeps import run as module
from checkpointing import OPTIONS, digest, interrupt_after, problem, uninterrupted
from user_losses import Bowl

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl

TRAJECTORIES = 3 * 4 * 3


def sentence(finished, rest):
    return rf"^The sweep was interrupted: {finished} of {TRAJECTORIES} trajectories are finished\. {rest}$"


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("looks", [0, 4, 15])
def test_what_is_there(tmp_path, monkeypatch, kept, looks):
    """What is finished is as it would be, what is in progress as far as it is, what was not begun is said to be so."""
    whole = sweep(*problem(), **OPTIONS)
    monkeypatch.setattr(module, "SAVE", 0.002)
    interrupt_after(monkeypatch, looks)
    rest = rf"The same call with checkpoint='{tmp_path}' goes on from here\." if kept else r"The same call begins anew; .*"
    with pytest.raises(Interrupted, match=sentence(r"\d+", rest)) as caught:
        sweep(*problem(), **OPTIONS, checkpoint=tmp_path if kept else None)
    result = caught.value.result
    assert {name: variable.dims for name, variable in result.variables.items()} == {
        name: variable.dims for name, variable in whole.variables.items()
    }
    assert result.attrs == whole.attrs
    ended = result.status != Status.INTERRUPTED
    count = int(ended.sum())
    assert (result.nit <= whole.nit).all()
    for name in ("status", "nit", "objective_best", "objective", "mean_step", "x"):
        np.testing.assert_array_equal(result[name].where(ended), whole[name].where(ended), err_msg=name)
    reached = result.iteration <= result.nit
    for name in ("objective", "mean_step"):
        np.testing.assert_array_equal(result[name], whole[name].where(reached), err_msg=name)
    begun = result.nit > 0
    assert (begun | np.isnan(result.objective).all("iteration")).all()
    monkeypatch.undo()
    if kept:
        assert digest(sweep(*problem(), **OPTIONS, checkpoint=tmp_path)) == uninterrupted()
    assert count <= TRAJECTORIES


def test_not_even_begun(monkeypatch):
    interrupt_after(monkeypatch, 0)
    monkeypatch.setattr(module.ThreadPoolExecutor, "submit", lambda *args: interrupt())
    with pytest.raises(Interrupted, match=sentence(0, ".*")) as caught:
        sweep(*problem(), **OPTIONS)
    result = caught.value.result
    assert (result.status == Status.INTERRUPTED).all()
    assert (result.nit == 0).all()
    assert np.isnan(result.x).all()
    assert np.isfinite(result.objective_start).all()


def interrupt():
    raise KeyboardInterrupt


def test_a_loss_that_is_interrupted(tmp_path):
    """KeyboardInterrupt in a thread of the sweep is one, too: the part is not taken for finished."""
    calls = []

    def loss(x, at=None):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return Bowl()(x)

    def run(at, **options):
        calls.clear()
        function = named("loss", lambda x: loss(x, at[0]))
        return sweep(function, None, [AdaGradDiff, AdaGrad], [0.1, 0.2], np.zeros((3, 2)), 30, **options)

    for checkpoint in (None, tmp_path / "kept"):
        with pytest.raises(Interrupted, match="The sweep was interrupted: 0 of 8") as caught:
            run(np.array([20]), n_jobs=1, checkpoint=checkpoint)
        assert (caught.value.result.status == Status.INTERRUPTED).all()
    assert not list((tmp_path / "kept").glob("part-????.npz"))


def press(*delays):
    """Ctrl-C, after each of these seconds."""

    def send():
        for delay in delays:
            time.sleep(delay)
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def slow(x):
    time.sleep(2e-3)
    return Bowl()(x)


@pytest.mark.parametrize("kept", [True, False])
def test_a_signal(tmp_path, default_handler, kept):
    arguments = slow, None, [AdaGradDiff, AdaGrad], [0.1, 0.2], np.zeros((3, 2)), 10_000
    sender = press(0.4)
    begin = time.perf_counter()
    with pytest.raises(Interrupted, match="goes on from here" if kept else "begins anew") as caught:
        sweep(*arguments, n_jobs=2, checkpoint=tmp_path if kept else None)
    assert time.perf_counter() - begin < 10.0  # all of it takes twice as long
    sender.join()
    assert signal.getsignal(signal.SIGINT) is default_handler
    assert (caught.value.result.nit > 3).all()
    if kept:
        assert len(list(tmp_path.glob("part-*.progress.npz"))) == 2


@pytest.mark.parametrize("kept", [True, False])
def test_the_second_signal_stops_at_once(tmp_path, default_handler, kept):
    """Although a call of the loss is still running; and what that does later is not written."""
    gate, waiting, calls = threading.Event(), threading.Event(), []

    def loss(x):
        if gate is not None and threading.current_thread().name.startswith("adagrad_diff.sweep"):
            calls.append(1)
            if len(calls) == 8:
                waiting.set()
                assert gate.wait(60)
        return Bowl()(x)

    def run():
        problem = named("loss", loss), None, [AdaGradDiff], [0.1, 0.2], np.zeros((3, 2)), 30
        return sweep(*problem, n_jobs=1, checkpoint=tmp_path if kept else None)

    def send():
        waiting.wait(60)
        for delay in (0.0, 0.7):
            time.sleep(delay)
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(Interrupted):
            run()
        assert not gate.is_set()
        before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    finally:
        sender.join()
        gate.set()
    for thread in threading.enumerate():
        if thread.name.startswith("adagrad_diff.sweep"):
            thread.join()
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert signal.getsignal(signal.SIGINT) is default_handler


def test_a_signal_when_all_is_done(default_handler, monkeypatch):
    """It is not swallowed either; the result is whole."""
    dataset = module.Trajectories.dataset

    def late(*args):
        signal.raise_signal(signal.SIGINT)
        return dataset(*args)

    monkeypatch.setattr(module.Trajectories, "dataset", late)
    with pytest.raises(Interrupted, match=sentence(TRAJECTORIES, ".*")) as caught:
        sweep(*problem(), **OPTIONS)
    monkeypatch.undo()
    assert digest(caught.value.result) == uninterrupted()


def test_a_signal_before_it_begins(default_handler):
    def loss(x):  # at the starts
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        return Bowl()(x)

    times = 1
    with pytest.raises(Interrupted, match="0 of 4") as caught:
        sweep(loss, None, [AdaGradDiff], [0.1, 0.2], np.zeros((3, 2)), 30)
    assert (caught.value.result.nit == 0).all()
    times = 2
    with pytest.raises(Interrupted, match=r"^The sweep was interrupted at once\. The same call begins anew"):
        sweep(loss, None, [AdaGradDiff], [0.1, 0.2], np.zeros((3, 2)), 30)


def test_what_cannot_be_kept_is_said(tmp_path, monkeypatch):
    arguments = slow, None, [AdaGradDiff], [0.1, 0.2], np.zeros((3, 2)), 10_000
    interrupt_after(monkeypatch, 20)

    def full(source, target):
        raise OSError(28, "No space left on device")

    def begin(path):
        if tmp_path not in Path(path).parents or Path(path).name == "manifest.json":  # Numba's files, and the beginning
            return replace
        return full

    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda source, target: begin(target)(source, target))
    with pytest.raises(
        Interrupted, match=r"Besides, there was an error: 'checkpoint' cannot be written: .*No space left"
    ) as caught:
        sweep(*arguments, checkpoint=tmp_path)
    assert isinstance(caught.value.__cause__, OSError)
    assert (caught.value.result.status == Status.INTERRUPTED).all()
