"""Ctrl-C in any second of a real process: one sentence, exit code 130, no traceback."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("click")
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="it looks at what a process has loaded"),
    pytest.mark.usefixtures("default_handler"),
]
COMMANDS = {
    "reproduce": (["reproduce", "2moons", "--etas", "4", "--starts", "1", "--out", "out"], 8.0),
    "fit": (["fit", "splice"], 3.0),
    "compare": (["compare", "splice", "--rules", "AdaGradDiff", "--etas", "0.1,1", "--starts", "1", "--budget", "30"], 6.0),
    "verify": (["verify", "lad", "--iterations", "200"], 5.0),
    "info": (["info"], 0.5),
}
MOMENTS = 4 if not os.environ.get("ALL_CASES") else 40


def ended(arguments, moment, cwd):
    """Send it that many seconds after NumPy is being loaded: before that, it is Python itself that starts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "adagrad_diff", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while process.poll() is None and "_multiarray_umath" not in Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.002)
        time.sleep(moment)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    except (ProcessLookupError, FileNotFoundError):
        pass  # it was done
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize("command", COMMANDS)
def test_in_any_second(command, tmp_path):
    arguments, longest = COMMANDS[command]
    rng = random.Random(command)
    for k, moment in enumerate([0.0, *(rng.uniform(0.0, longest) for _ in range(MOMENTS))]):
        cwd = tmp_path / str(k)
        cwd.mkdir()
        code, _, err = ended(arguments, moment, cwd)
        assert "Traceback" not in err, (moment, err)
        if code:  # else it was done before
            assert code == 130, (moment, err)
            assert err.count("Interrupted.") == 1, (moment, err)
        assert not list(cwd.rglob("*.partial")), moment


def test_twice(tmp_path):
    """Who presses it again, while what is finished is being kept, hears no more, and sees no traceback either."""
    process = subprocess.Popen(
        [sys.executable, "-m", "adagrad_diff", "verify", "hinge", "--iterations", "1000000"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stderr.readline()  # it has begun
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 130, err
    assert err.count("Interrupted.") == 1
    assert "Traceback" not in err


def test_who_was_told_to_ignore_it_does(tmp_path):
    """As nohup does, and shells with what they start in the background."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"trap '' INT; exec {sys.executable} -m adagrad_diff info"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.1)  # for the shell
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    out = process.communicate(timeout=60)[0]
    assert (process.returncode, "numba" in out) == (0, True)


def test_an_interrupt_that_python_would_lose(tmp_path):
    """In a destructor, from which no exception comes out: what was being written is gone, too."""
    code = """
import os, signal
from pathlib import Path
from adagrad_diff.common import ctrl_c, files
ctrl_c.take_over()
class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
with ctrl_c.Working(), files.partial(Path("figure.png")):
    held = Held()
    del held
    print("still here")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "Interrupted. The same command begins again."
    assert not list(tmp_path.iterdir())
