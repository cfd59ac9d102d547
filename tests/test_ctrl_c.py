"""Ctrl-C in a real process: one sentence, exit code 130, no traceback."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from waiting import wait_until

pytest.importorskip("click")
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not Path("/proc/self/maps").exists(), reason="it looks at what a process has loaded"
    ),
    pytest.mark.usefixtures("default_handler"),
]
COMMANDS = {
    "reproduce": (["reproduce", "2moons", "--etas", "4", "--starts", "1", "--out", "out"], 8.0),
    "fit": (["fit", "splice"], 3.0),
    "compare": (
        [
            "compare",
            "splice",
            "--rules",
            "AdaGradDiff",
            "--etas",
            "0.1,1",
            "--starts",
            "1",
            "--budget",
            "30",
        ],
        6.0,
    ),
    "verify": (["verify", "lad", "--iterations", "200"], 5.0),
}


def started(arguments, cwd, through=()):
    """Start a command and return it as soon as it loads NumPy: before that, it is Python itself that starts."""
    command = [*through, sys.executable, "-m", "adagrad_diff", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=cwd, **pipes, start_new_session=True)
    maps = Path(f"/proc/{process.pid}/maps")
    wait_until(
        lambda: process.poll() is not None or "_multiarray_umath" in maps.read_text(), seconds=300
    )
    return process


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_at_any_moment(command, tmp_path):
    """Whenever it comes, the process has ended before, or ends with the sentence: the length of the pause does not matter."""
    arguments, longest = COMMANDS[command]
    for k, moment in enumerate([0.0, random.uniform(0.0, longest)]):
        cwd = tmp_path / str(k)
        cwd.mkdir()
        process = started(arguments, cwd)
        time.sleep(moment)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        err = process.communicate(timeout=300)[1]
        assert "Traceback" not in err, (moment, err)
        if process.returncode:  # else it was done before
            assert process.returncode == 130, (moment, err)
            assert err.count("Interrupted.") == 1, (moment, err)
        assert not list(cwd.rglob("*.partial")), moment


def test_a_process_that_ignores_it(tmp_path):
    """As nohup does, and shells with what they start in the background."""
    process = started(["info"], tmp_path, through=["sh", "-c", 'trap "" INT; exec "$@"', "sh"])
    for _ in range(3):
        process.send_signal(signal.SIGINT)
    out = process.communicate(timeout=300)[0]
    assert (process.returncode, "numba" in out) == (0, True)
