"""Fixtures that more than one file uses."""

from __future__ import annotations

import random
import signal
from contextlib import suppress

import pytest

import certifying


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Choose the seed of hypothesis here, so that the header can print it and every worker uses the same one."""
    if config.getoption("hypothesis_seed", None) is None and not hasattr(config, "workerinput"):
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config):
    return (
        f"repeat the examples of hypothesis with --hypothesis-seed={config.option.hypothesis_seed}"
    )


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command of the command line in a directory that holds mixed.csv and nothing else."""
    from click.testing import CliRunner

    import mixed_table
    from adagrad_diff.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ADAGRAD_DIFF_DATA", raising=False)
    mixed_table.write(tmp_path / "mixed.csv", mixed_table.columns())
    return lambda *args: CliRunner().invoke(main, list(args))


@pytest.fixture
def default_handler():
    """Ctrl-C as in an ordinary Python session, here and in the commands a test starts.

    A shell that starts the tests in the background has told them to ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def unsaved(monkeypatch):
    """Figures are made, but neither arranged nor drawn: most of the time of a test that looks at the numbers beside them."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **options: file.write(b"a figure"))


def pytest_addoption(parser):
    parser.addoption("--compiled", action="store_true", help="compile loops for small arrays, too")


@pytest.fixture(autouse=True)
def compiled_loops(request, monkeypatch):
    """With --compiled, loops that are left to NumPy for small arrays are compiled as for large ones."""
    if request.config.getoption("compiled"):
        from adagrad_diff.linalg import compiling

        monkeypatch.setattr(compiling, "largest_small", -1)


@pytest.fixture(autouse=True)
def every_certificate_is_recomputed(monkeypatch):
    """Whatever bound a test leads to is checked afterwards, in extended precision and from the formulas alone."""
    from adagrad_diff import duality

    made = []

    class Watched(duality.Certifier):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(duality, "Certifier", Watched)
    yield
    for certifier in made:
        if isinstance(certifier.dual, str):
            continue
        with suppress(NameError):  # blocks that an example in a docstring computes are gone by then
            certifying.check_bound(
                certifier.dual.loss, certifier.dual.penalty, certifier.value, certifier.point
            )
