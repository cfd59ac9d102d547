"""A sweep for the tests of checkpoints, and how its results and its files are compared."""

import functools
import hashlib
import itertools
import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np

from adagrad_diff import L1, AdaGrad, AdaGradDiff, Poisson, Status, named, sweep
from user_losses import Bowl, data
from waiting import wait_until

A, REAL, LABELS, CLASSES = data(samples=60, features=8)
COUNTS = np.round(np.abs(REAL))
X0S = np.random.default_rng(1).standard_normal((8, 3))


def schedule(eta):
    return AdaGradDiff(named("eta / sqrt(n)", lambda n: eta / np.sqrt(n)))


def problem(n_iter=60):
    """Some of its trajectories fail, at different times; some rules are cut in several chunks."""
    rules = {"Diff": AdaGradDiff, "AdaGrad": AdaGrad, "schedule": schedule}
    return Poisson(A, COUNTS), L1(0.01), rules, [0.05, 3.0, 1e3, 0.2], X0S, n_iter


OPTIONS = {"record": 7, "memory": 30_000, "n_jobs": 2}


def digest(result):
    """Every bit of it."""
    content = {
        name: hashlib.sha256(result[name].values.tobytes()).hexdigest() for name in result.variables
    }
    return content | {"attrs": hashlib.sha256(json.dumps(result.attrs).encode()).hexdigest()}


def header(path):
    """The JSON header of a file."""
    with np.load(path) as file:
        return json.loads(str(file["header"]))


def snapshot(directory):
    """Every byte of it."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in Path(directory).rglob("*")
    }


@functools.cache
def uninterrupted():
    """The digest of the problem, computed in one go."""
    result = sweep(*problem(), **OPTIONS)
    assert set(np.unique(result.status)) >= {Status.MAX_ITER, Status.NOT_FINITE}
    return digest(result)


class Pressing:
    """A bowl that presses Ctrl-C in its call number `at`.

    It is slow afterwards, so that the sweep cannot end before it stops.
    """

    def __init__(self, at):
        self.at, self.calls, self.lock = at, 0, threading.Lock()

    def __call__(self, x):
        with self.lock:
            self.calls += 1
            press = self.calls == self.at
        if press:
            os.kill(os.getpid(), signal.SIGINT)
        if self.calls >= self.at:
            time.sleep(0.01)
        return Bowl()(x)


class Gated:
    """A bowl that other processes evaluate only when a file `go` exists."""

    def __init__(self, directory):
        self.begun, self.go, self.home = directory / "begun", directory / "go", os.getpid()

    def __call__(self, x):
        if os.getpid() != self.home:
            self.begun.touch()
            wait_until(self.go.exists)
        return Bowl()(x)


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
