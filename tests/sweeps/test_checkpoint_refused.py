"""Directories that hold the checkpoint of another sweep, something else, or damaged files; and disks that are full."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from adagrad_diff import L1, LAD, AdaGrad, AdaGradDiff, Box, Squared, named, sweep
from checkpointing import REAL, X0S, A, digest, schedule, snapshot
from looping import looped

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl


def quadratic(c):
    return lambda x: (0.5 * np.sum(c * x**2, axis=0), c * x)


BASE = {
    "loss": lambda: Squared(A, REAL),
    "penalty": lambda: Box(-1.0, 1.0),
    "rules": lambda: [AdaGradDiff, AdaGrad],
    "etas": lambda: [0.1, 0.2],
    "x0s": lambda: X0S,
    "n_iter": lambda: 20,
}
X0S_CHANGED = X0S + np.eye(8)[:, :3] * 1e-15
A_CHANGED = A.copy()
A_CHANGED[-1, -1] = np.nextafter(A[-1, -1], 10.0)
OTHER = {
    "A": ({"loss": Squared(A_CHANGED, REAL)}, "loss.A.whole.array.sha256"),
    "b": ({"loss": Squared(A, -REAL)}, "loss.b.sha256"),
    "l2": ({"loss": Squared(A, REAL, l2=1e-9)}, "loss.l2"),
    "class": ({"loss": LAD(A, REAL)}, "loss.class"),
    "precision": ({"loss": Squared(A.astype(np.float32), REAL)}, "loss.A.dtype"),
    "penalty": ({"penalty": L1(0.1)}, "penalty.class"),
    "bound": ({"penalty": Box(-1.0, 1.5)}, "penalty.upper"),
    "eta": ({"etas": [0.1, 0.3]}, "etas[1]"),
    "order of etas": ({"etas": [0.2, 0.1]}, "etas[0]"),
    "starts": ({"x0s": X0S_CHANGED}, "x0s.sha256"),
    "n_iter": ({"n_iter": 21}, "n_iter"),
    "record": ({"record": 2}, "record"),
    "keep_x": ({"keep_x": False}, "keep_x"),
    "eta of a rule": (
        {"rules": {"AdaGradDiff": AdaGradDiff, "AdaGrad": lambda eta: AdaGrad(min(eta, 0.15))}},
        "rules.AdaGrad.eta",
    ),
    "another name": ({"rules": {"AdaGradDiff": AdaGradDiff, "Ada": AdaGrad}}, "rules.AdaGrad"),
    "a schedule": ({"rules": {"AdaGradDiff": schedule, "AdaGrad": AdaGrad}}, "rules.AdaGradDiff"),
}


def run(directory, **changes):
    return sweep(**{name: make() for name, make in BASE.items()} | changes, checkpoint=directory)


def assert_refused(directory, where, **changes):
    before = snapshot(directory)
    with pytest.raises(ValueError, match="belongs to another sweep") as caught:
        run(directory, **changes)
    sentence = str(caught.value)
    assert f"belongs to another sweep, for {where}" in sentence
    assert sentence.startswith(f"The checkpoint {directory / 'sweep.npz'} cannot be continued")
    assert sentence.endswith("or choose another 'checkpoint'; nothing was changed in this one.")
    assert snapshot(directory) == before


@pytest.fixture(scope="module")
def of_another(tmp_path_factory):
    directory = tmp_path_factory.mktemp("another")
    run(directory)
    return directory


@looped("case", OTHER)
def test_the_checkpoint_of_another_problem(case, of_another):
    changes, where = OTHER[case]
    assert_refused(of_another, where, **changes)


class Hidden:
    def __init__(self, c):
        self._c = c

    def value_and_grad(self, x):
        return quadratic(self._c)(x)

    def value(self, x):
        return self._c * np.abs(x).sum()

    def prox(self, z, step):
        return z - np.clip(z, -self._c * step, self._c * step)


def falling(eta):
    return AdaGradDiff(lambda n: eta / n)


NAMELESS = {
    "a lambda": ({"loss": quadratic(1.0)}, "loss.function"),
    "an object as loss": ({"loss": Hidden(1.0)}, "loss.function.of"),
    "an object as penalty": ({"penalty": Hidden(1.0)}, "penalty.penalty"),
    "an operator": ({"loss": Squared(aslinearoperator(A), REAL)}, "loss.A.whole.operator"),
    "a schedule": ({"rules": {"falling": falling}}, "rules.falling[0].eta"),
}


@looped("case", NAMELESS)
def test_what_has_no_name_is_refused(case, tmp_path):
    changes, where = NAMELESS[case]
    with pytest.raises(ValueError, match=r"adagrad_diff\.named\('a name', it\)") as caught:
        run(tmp_path / "new", **changes)
    assert str(caught.value).startswith(f"'checkpoint' needs a name for {where}, ")
    assert not (tmp_path / "new").exists()


def test_what_has_a_name_goes_on(tmp_path):
    def changes():
        return {
            "loss": named("loss", quadratic(1.0)),
            "penalty": named("penalty", Hidden(0.1)),
            "rules": {"falling": lambda eta: AdaGradDiff(named("falling", lambda n: eta / n))},
        }

    whole = run(None, **changes())
    assert digest(run(tmp_path, **changes())) == digest(run(tmp_path, **changes())) == digest(whole)
    assert_refused(
        tmp_path, "loss.function.named", **changes() | {"loss": named("other", quadratic(1.0))}
    )


def test_another_function_of_the_same_name(tmp_path):
    """Code is known by its name, but its values at the starts are looked at."""
    for k, (one, other, where) in enumerate(
        (
            (
                {"loss": named("f", quadratic(1.0))},
                {"loss": named("f", quadratic(2.0))},
                "starts.loss[0]",
            ),
            (
                {"loss": named("f", Hidden(1.0))},
                {"loss": named("f", Hidden(1.001))},
                "starts.loss[0]",
            ),
            (
                {"penalty": named("p", Hidden(1.0))},
                {"penalty": named("p", Hidden(2.0))},
                "starts.penalty[0]",
            ),
        )
    ):
        directory = tmp_path / str(k)
        run(directory, **one)
        assert_refused(directory, where, **other)


def test_a_directory_of_something_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    before = snapshot(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"'checkpoint' must be an empty or new directory.* holds 'thesis\.tex' and no sweep",
    ):
        run(tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("inside", ["", "below"])
def test_a_file_where_the_directory_should_be(tmp_path, inside):
    path = tmp_path / "file"
    path.write_text("precious")
    with pytest.raises(
        OSError, match=r"'checkpoint' cannot be written: .*file.*: (File exists|Not a directory)\.$"
    ):
        run(path / inside)
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    ("target", "code"), [("sweep.npz", errno.EROFS), ("chunk-0000.npz", errno.ENOSPC)]
)
def test_nothing_can_be_written(tmp_path, monkeypatch, target, code):
    """A disk that is full, or a directory that is not ours: a sentence, and what was there stays."""
    replace = os.replace

    def failing(source, destination):
        if Path(destination).name == target:
            raise OSError(code, os.strerror(code))
        replace(source, destination)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match=rf"{target} cannot be written: {os.strerror(code)}\. "):
        run(tmp_path)
    assert not list(tmp_path.glob("*.partial"))
    monkeypatch.undo()
    assert digest(run(tmp_path)) == digest(run(None))
