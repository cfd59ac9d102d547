"""One run has a checkpoint at a time: another process or thread is told so, and what a kill leaves is in nobody's way."""

import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from adagrad_diff import Interrupted, minimize
from user_losses import Bowl

pytest.importorskip("fcntl")
START = [1.0, 2.0, 3.0]
IN_USE = r"^The checkpoint {} is in use by another run\. Wait for its end, or choose another 'checkpoint'\.$"

BUSY = """
import sys
from adagrad_diff import minimize

def loss(x):
    print("running", flush=True)
    return float(x @ x), 2 * x

minimize(loss, [1.0, 2.0, 3.0], eta=0.1, max_iter=10**6, checkpoint=sys.argv[1], every=0.0)
"""


def run(path, **options):
    return minimize(Bowl(), START, eta=0.3, max_iter=20, checkpoint=path, **options)


def in_use(path):
    return pytest.raises(BlockingIOError, match=IN_USE.format(re.escape(str(path))))


def test_another_process(tmp_path):
    """It is told from one that was killed."""
    path = tmp_path / "run.npz"
    with subprocess.Popen(
        [sys.executable, "-c", BUSY, str(path)], stdout=subprocess.PIPE, text=True
    ) as busy:
        try:
            for _ in range(5):
                assert busy.stdout.readline() == "running\n"
            with in_use(path):
                run(path)
            assert busy.poll() is None
        finally:
            busy.send_signal(signal.SIGKILL)
    assert path.with_name("run.npz.lock").exists()
    path.unlink()  # of another problem
    assert run(path).nit == 20
    assert [found.name for found in tmp_path.iterdir()] == ["run.npz"]


def test_a_run_inside_of_itself(tmp_path):
    path = tmp_path / "run.npz"
    with in_use(path):
        run(path, callback=lambda intermediate_result: run(path))
    assert run(path).nit == 20


def interrupted(intermediate_result):
    signal.raise_signal(signal.SIGINT)


def failing(intermediate_result):
    raise ZeroDivisionError


@pytest.mark.usefixtures("default_handler")
@pytest.mark.parametrize("end", [interrupted, failing])
def test_however_a_run_ends_its_checkpoint_is_free(end, tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises((Interrupted, ZeroDivisionError)):
        run(path, callback=end)
    (tmp_path / "text.npz").write_text("no checkpoint")
    with pytest.raises(ValueError, match="is no readable checkpoint"):
        run(tmp_path / "text.npz")
    assert {found.name for found in tmp_path.iterdir()} <= {"run.npz", "text.npz"}
    assert run(path).nit == 20


def test_a_file_of_that_name_stays(tmp_path):
    (mine := tmp_path / "run.npz.lock").write_text("precious")
    assert np.isfinite(run(tmp_path / "run.npz").fun)
    assert mine.read_text() == "precious"
