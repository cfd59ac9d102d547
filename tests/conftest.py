"""Fixtures that more than one file uses."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import certifying


@pytest.fixture
def default_handler():
    """Ctrl-C as in an ordinary Python session, here and in the commands a test starts.

    A shell that starts the tests in the background has told them to ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def limits_found_once(monkeypatch):
    """threadpoolctl looks through the memory map of the process for every sweep, and that is long where much is loaded."""
    import threadpoolctl

    controller = threadpoolctl.ThreadpoolController()
    monkeypatch.setattr(
        threadpoolctl, "threadpool_limits", lambda limits, user_api: controller.limit(limits=limits, user_api=user_api)
    )


@pytest.fixture
def unsaved(monkeypatch):
    """Figures are made, but neither arranged nor drawn: most of the time of a test that looks at the numbers beside them."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: Path(path).write_text("a figure"))
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda figure: None)


@pytest.fixture(autouse=True)
def every_certificate_is_recomputed(monkeypatch):
    """Whatever bound a test leads to is checked afterwards, in extended precision and from the formulas alone."""
    from adagrad_diff import certificates

    made = []

    class Watched(certificates.Certifier):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(certificates, "Certifier", Watched)
    yield
    for certifier in made:
        if not isinstance(certifier.dual, str):
            certifying.check_bound(certifier.dual.loss, certifier.dual.penalty, certifier.bound, certifier.point)
