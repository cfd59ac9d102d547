"""Ctrl-C ends a fit, and whatever called it: nothing is swallowed."""

import signal
import subprocess
import sys
import threading
from functools import partial

import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from adagrad_diff import Interrupted
from adagrad_diff import sklearn as door
from sklearn_data import NAMES, data, make

pytestmark = pytest.mark.peer

# Runs that nothing else ends for seconds.
ENDLESS = {"eta": 1e-9, "tol": 0.0, "max_iter": 200_000}


@pytest.fixture
def ctrl_c(default_handler):
    """Call what is given with Ctrl-C pressed in a moment, and give back what it raises."""

    def call(run):
        timer = threading.Timer(0.1, partial(signal.raise_signal, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt) as caught:
            run()
        timer.join()
        assert signal.getsignal(signal.SIGINT) is default_handler
        return caught.value

    return call


def compiled(model, X, y):
    """The model, after what it needs has been compiled, which takes longer than a moment."""
    with pytest.warns(ConvergenceWarning):
        clone(model).set_params(max_iter=2).fit(X, y)
    return model


@pytest.mark.parametrize("name", NAMES)
def test_fit(name, ctrl_c):
    X, y = data(name, classes=3)
    model = compiled(make(name, **ENDLESS), X, y)
    error = ctrl_c(lambda: model.fit(X, y))
    assert isinstance(error, Interrupted)
    assert error.result.nit > 0
    assert not hasattr(model, "converged_")


def test_path(ctrl_c):
    X, y = data("Lasso")
    model = compiled(door.Lasso(**ENDLESS), X, y)
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
    model = compiled(door.Lasso(**ENDLESS, verbose=verbose), X, y)
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
