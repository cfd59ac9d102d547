"""A sweep that is killed, interrupted or fails resumes from its checkpoint with bitwise identical results."""

import io
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import AdaGrad, AdaGradDiff, Interrupted, Minibatch, Poisson, named, sweep
from checkpointing import (
    COUNTS,
    OPTIONS,
    A,
    Crash,
    crash_at,
    digest,
    header,
    problem,
    snapshot,
    uninterrupted,
)
from user_losses import Bowl
from waiting import wait_until

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl

HERE = Path(__file__).parents[1] / "cases"  # where a process of its own finds the helpers


def test_what_is_written(tmp_path):
    directory = tmp_path / "a" / "new one"
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=directory)) == uninterrupted()
    names = sorted(path.name for path in directory.iterdir())
    assert names == [*(f"chunk-{k:04d}.npz" for k in range(len(names) - 1)), "sweep.npz"]
    assert len(names) > 7
    assert header(directory / "sweep.npz")["sweep"]["n_iter"] == 60


def test_what_is_finished_is_not_computed_again(tmp_path):
    counted = []

    def loss(x):
        counted.append(x.shape[1])
        return Bowl()(x)

    def run():
        rules = [AdaGradDiff, AdaGrad]
        return sweep(
            named("loss", loss),
            None,
            rules,
            [0.1, 0.2],
            np.zeros((3, 2)),
            20,
            checkpoint=str(tmp_path),
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


@pytest.mark.parametrize("before", [True, False])
def test_a_crash_at_any_file(tmp_path, monkeypatch, before):
    """Files appear one after another: a crash between any two of them leaves something that can be continued."""
    crashes = 0
    for moment in (1, 1, 2, 3, 10**9):
        with monkeypatch.context() as patch:
            crash_at(patch, moment, before=before)
            try:
                result = sweep(*problem(), **OPTIONS, checkpoint=tmp_path)
            except Crash:
                crashes += 1
                assert (tmp_path / "sweep.npz").exists() or before
    assert crashes == 4
    assert digest(result) == uninterrupted()
    assert not list(tmp_path.glob("*.partial"))


def test_the_plan_is_that_of_the_beginning(tmp_path, monkeypatch):
    """Also with more memory or other threads, the chunks stay as they were: so do the bits."""
    with monkeypatch.context() as patch:
        crash_at(patch, 2)
        with pytest.raises(Crash):
            sweep(*problem(), **OPTIONS, checkpoint=tmp_path)
    options = {"record": 7, "memory": "1GB", "n_jobs": 3, "progress": False, "label": "another"}
    assert digest(sweep(*problem(), **options, checkpoint=tmp_path)) == uninterrupted()


def test_minibatches(tmp_path, monkeypatch):
    _, *rest = problem()
    arguments = (Minibatch(Poisson(A, COUNTS), 2), *rest)
    whole = sweep(*arguments, **OPTIONS)
    with monkeypatch.context() as patch:
        crash_at(patch, 4)
        with pytest.raises(Crash):
            sweep(*arguments, **OPTIONS, checkpoint=tmp_path)
    assert digest(sweep(*arguments, **OPTIONS, checkpoint=tmp_path)) == digest(whole)
    with pytest.raises(ValueError, match="seed"):
        sweep(Minibatch(Poisson(A, COUNTS), 2, seed=8), *rest, **OPTIONS, checkpoint=tmp_path)


LONG = """
import sys
sys.path.insert(0, sys.argv[1])
import checkpointing as t

t.sweep(*t.problem(10**8), record=10**7, n_jobs=2, checkpoint=sys.argv[2])
print("finished")
"""
IN_USE = r"^The checkpoint {} is in use by another run\. Wait for its end, or choose another 'checkpoint'\.$"


class Terminal(io.StringIO):
    """A terminal at which Ctrl-C is pressed as soon as a progress bar appears."""

    def write(self, text):
        if not self.getvalue():
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


@pytest.mark.usefixtures("default_handler")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_another_process(tmp_path, how, monkeypatch):
    """While it runs, its checkpoint is in use. Ctrl-C ends it with a message. Then the checkpoint is free again."""

    def go_on(**options):
        sweep(*problem(10**8), record=10**7, n_jobs=2, checkpoint=tmp_path, **options)

    run = [sys.executable, "-c", LONG, str(HERE), str(tmp_path)]
    with subprocess.Popen(
        run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_until(
                lambda: (tmp_path / "sweep.npz").exists() or process.poll() is not None,
                seconds=300,
            )
            with pytest.raises(
                BlockingIOError, match=IN_USE.format(re.escape(str(tmp_path / "sweep.npz")))
            ):
                go_on()
            assert process.poll() is None
        finally:
            process.send_signal(how)
        out, err = process.communicate(timeout=300)
    assert out == ""
    assert process.returncode != 0
    if how == signal.SIGINT:
        assert re.search(
            r"Interrupted: The sweep was interrupted.* resumes from here\.$", err.rstrip()
        )
        assert not list(tmp_path.glob("*.partial"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(Interrupted):
        go_on(progress=True)
