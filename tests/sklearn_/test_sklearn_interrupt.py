"""Ctrl-C ends a fit and its caller."""

import re
import signal
import subprocess
import sys

import pytest

pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV

from adagrad_diff import Interrupted
from adagrad_diff import sklearn as door
from adagrad_diff.linalg import Source
from sklearn_data import data, make

pytestmark = pytest.mark.peer

ENDLESS = {
    "eta": 1e-9,
    "tol": 0.0,
    "max_iter": 200_000,
}  # Nothing else ends such a run for seconds.


class Pressing(Source):
    """Data in blocks, of which one of the later reads presses Ctrl-C."""

    def __init__(self, X, reads=100):
        self.X, self.reads, self.shape, self.cuts = X, reads, X.shape, (0, len(X))

    def block(self, k):
        self.reads -= 1
        if self.reads == 0:
            signal.raise_signal(signal.SIGINT)
        return self.X


@pytest.mark.parametrize("name", ["Lasso", "QuantileRegressor", "SparseSVC", "LogisticRegression"])
def test_fit(name, default_handler):
    X, y = data(name, classes=3)
    model = make(name, **ENDLESS)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(Pressing(X), y)
    assert isinstance(caught.value, Interrupted)
    assert caught.value.result.nit > 1
    assert signal.getsignal(signal.SIGINT) is default_handler
    assert not hasattr(model, "converged_")


class Impatient:
    """A penalty that presses Ctrl-C in one of its calls."""

    def __init__(self, calls=100):
        self.calls = calls

    def value(self, x):
        return 0.0

    def prox(self, z, step):
        self.calls -= 1
        if self.calls == 0:
            signal.raise_signal(signal.SIGINT)
        return z


@pytest.mark.parametrize("eta", ["auto", 0.1])
@pytest.mark.usefixtures("default_handler")
def test_fits_paths_and_searches(eta):
    X, y = data("Lasso")
    model = door.LinearRegressor(penalty=Impatient(), alpha=1.0, eta=eta, tol=0.0)
    with pytest.raises(Interrupted):
        model.fit(X, y)
    with pytest.raises(Interrupted):
        model.set_params(penalty=Impatient()).path(X, y, [0.01, 0.1])
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(model.set_params(penalty=Impatient()), {"alpha": [0.01, 0.02]}, cv=2).fit(X, y)


def test_before_the_run():
    """There is no result yet."""

    def kernel(X, Y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        door.KernelSVC(kernel=kernel).fit(*data("KernelSVC"))


SEARCH = """
import numpy as np
from sklearn.model_selection import GridSearchCV
from adagrad_diff.sklearn import LinearRegressor

class Announcing:
    calls = 0

    def value(self, x):
        return 0.0

    def prox(self, z, step):
        self.calls += 1
        if self.calls == 100:
            print("running", flush=True)
        return z

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 5))
model = LinearRegressor("absolute", Announcing(), tol=0.0, eta=1e-9, max_iter=10**6)
GridSearchCV(model, {"alpha": [1e-5, 2e-5]}, cv=2).fit(X, X[:, 0])
print("the end", flush=True)
"""


@pytest.mark.slow
def test_the_program_of_a_user(default_handler):
    """A search in another process ends as every program does on Ctrl-C."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SEARCH], text=True, **pipes)
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "the end" not in out
    assert process.returncode != 0
    assert re.match(
        r"(adagrad_diff\.[a-z.]+\.Interrupted|KeyboardInterrupt)\b", err.splitlines()[-1]
    )
