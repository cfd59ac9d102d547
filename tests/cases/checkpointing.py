"""A sweep for the tests of checkpoints, and how its results and its files are compared."""

import functools
import hashlib
import itertools
import json
import os
from concurrent.futures import wait
from pathlib import Path

import numpy as np

from adagrad_diff import L1, AdaGrad, AdaGradDiff, Poisson, Status, named, sweep
from adagrad_diff.sweeps import run as module
from user_losses import data

A, REAL, LABELS, CLASSES = data(samples=60, features=8)
COUNTS = np.round(np.abs(REAL))
X0S = np.random.default_rng(1).standard_normal((8, 3))


def schedule(eta):
    return AdaGradDiff(named("eta / sqrt(n)", lambda n: eta / np.sqrt(n)))


def problem(n_iter=300):
    """Some of its trajectories fail, at different times; some rules are cut in several chunks."""
    rules = {"Diff": AdaGradDiff, "AdaGrad": AdaGrad, "schedule": schedule}
    return Poisson(A, COUNTS), L1(0.01), rules, [0.05, 3.0, 1e3, 0.2], X0S, n_iter


OPTIONS = {"record": 7, "memory": 60_000, "n_jobs": 2}


def digest(result):
    """Every bit of it."""
    content = {name: hashlib.sha256(result[name].values.tobytes()).hexdigest() for name in result.variables}
    return content | {"attrs": hashlib.sha256(json.dumps(result.attrs).encode()).hexdigest()}


def snapshot(directory):
    """Every byte of it."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path(directory).rglob("*")}


@functools.cache
def uninterrupted():
    """The digest of the problem, computed in one go."""
    result = sweep(*problem(), **OPTIONS)
    assert set(np.unique(result.status)) >= {Status.MAX_ITER, Status.NOT_FINITE}
    return digest(result)


def interrupt_after(monkeypatch, looks):
    """Ctrl-C arrives when the main thread has looked at the progress so many times."""
    count = [0]

    def interrupted(*args):
        count[0] += 1
        if count[0] > looks:
            raise KeyboardInterrupt
        return wait(*args)

    monkeypatch.setattr(module, "LOOK_EVERY", 0.004)
    monkeypatch.setattr(module, "wait", interrupted)


class Crash(BaseException):
    """The process ends here."""


def crash_at(monkeypatch, moment, *, before=False):
    """The process ends when a file gets its name for the so-manieth time."""
    replace, moments = os.replace, itertools.count(1)

    def crashing(source, target):
        now = next(moments) == moment
        if now and before:
            raise Crash
        replace(source, target)
        if now:
            raise Crash

    monkeypatch.setattr(os, "replace", crashing)


def half_way(monkeypatch, directory, arguments, options, files=12):
    """Begin a sweep in the directory, and leave it with a part in progress: the path of that."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "SAVE", 0.0)
        crash_at(patch, files)
        try:
            sweep(*arguments, **options, checkpoint=directory)
        except Crash:
            return next(directory.glob("part-*.progress.npz"))
    raise AssertionError("it was through before")
