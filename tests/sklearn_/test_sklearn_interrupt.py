"""Ctrl-C ends a fit, and whatever called it: nothing is swallowed."""

import itertools
import signal
import subprocess
import sys
import threading

import pytest

pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV

from adagrad_diff import Interrupted, State
from adagrad_diff import sklearn as door
from sklearn_data import NAMES, data, make

pytestmark = pytest.mark.peer

# Runs that nothing else ends for seconds.
ENDLESS = {"eta": 1e-9, "tol": 0.0, "max_iter": 200_000}


@pytest.fixture
def ctrl_c(default_handler, monkeypatch):
    """Call what is given with Ctrl-C pressed after some iterations, and give back what it raises."""

    def call(run):
        iterations, advance = itertools.count(1), State.advance

        def advance_and_press(state, *values):
            advance(state, *values)
            if next(iterations) == 20:
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(State, "advance", advance_and_press)
        with pytest.raises(KeyboardInterrupt) as caught:
            run()
        assert signal.getsignal(signal.SIGINT) is default_handler
        return caught.value

    return call


@pytest.mark.parametrize("name", NAMES)
def test_fit(name, ctrl_c):
    X, y = data(name, classes=3)
    model = make(name, **ENDLESS)
    error = ctrl_c(lambda: model.fit(X, y))
    assert isinstance(error, Interrupted)
    assert error.result.nit >= 20 // 3  # of three classes, which may take turns
    assert not hasattr(model, "converged_")


def test_path(ctrl_c):
    X, y = data("Lasso")
    model = door.Lasso(**ENDLESS)
    assert isinstance(ctrl_c(lambda: model.path(X, y, [0.01, 0.1])), Interrupted)


class Impatient:
    """A penalty that is interrupted in the midst of a run."""

    def __init__(self, calls=100):
        self.calls = calls

    def value(self, x):
        return 0.0

    def prox(self, z, step):
        self.calls -= 1
        if self.calls == 0:
            raise KeyboardInterrupt
        return z


@pytest.mark.parametrize("eta", ["auto", 0.1])
def test_inside_the_penalty(eta):
    with pytest.raises(KeyboardInterrupt) as caught:
        door.LinearRegressor(penalty=Impatient(), alpha=1.0, eta=eta).fit(*data("Lasso"))
    assert isinstance(caught.value, Interrupted)


def test_before_the_run():
    """There is no result yet, but the interrupt is none the less one."""

    def kernel(X, Y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        door.KernelSVC(kernel=kernel).fit(*data("KernelSVC"))


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_search_ends(ctrl_c, verbose):
    X, y = data("Lasso")
    model = door.Lasso(**ENDLESS, verbose=verbose)
    ctrl_c(lambda: GridSearchCV(model, {"alpha": [0.01, 0.02]}, cv=2).fit(X, y))


SEARCH = """
import numpy as np
from sklearn.model_selection import GridSearchCV
from adagrad_diff.sklearn import LADRegressor
rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 50))
y = X @ rng.standard_normal(50) + rng.standard_cauchy(2000)
LADRegressor(max_iter=20, tol=0.9).fit(X, y)
print("ready", flush=True)
GridSearchCV(LADRegressor(tol=0.0, max_iter=10**6), {"alpha": [1e-5, 2e-5]}, cv=2).fit(X, y)
print("the end", flush=True)
"""


def test_the_program_of_a_user(default_handler):
    """A search with the default step sizes in a process of its own ends as every program does on Ctrl-C."""
    process = subprocess.Popen([sys.executable, "-c", SEARCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    threading.Timer(0.3, process.send_signal, [signal.SIGINT]).start()
    out, err = process.communicate(timeout=60)
    assert "the end" not in out
    assert process.returncode != 0
    assert err.splitlines()[-1].startswith(("adagrad_diff.solve.status.Interrupted", "KeyboardInterrupt"))
