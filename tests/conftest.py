"""Fixtures that more than one file uses."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture
def default_handler():
    """Ctrl-C as in an ordinary Python session, here and in the commands a test starts.

    A shell that starts the tests in the background has told them to ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)
