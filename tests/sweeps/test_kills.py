"""Random kills (SIGKILL) of runs, sweeps, commands and saves: they go on bit for bit, and nothing is left behind.

ADAGRAD_DIFF_KILLS=125 in the environment kills each of them that many times; `make kills` prints a table of a hundred.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("ADAGRAD_DIFF_KILLS", "0"))
FEW = {
    "minimize": 2,
    "sweep": 1,
    "compare": 1,
    "reproduce": 1,
    "save": 2,
}  # or more, until these files have been seen half done
SEEN = {
    "minimize": set(),
    "sweep": {"sweep.npz.lock"},
    "compare": set(),
    "reproduce": set(),
}
SEEN |= {"save": {".partial"}}
CORE = ("minimize", "save")  # which need nothing beside the core dependencies


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in CORE else [pytest.mark.peer]) for kind in FEW]
)
def test_killed_at_random_moments(tmp_path, kind):
    seed, kills = int.from_bytes(os.urandom(4)), KILLS or FEW[kind]
    script = Path(__file__).parents[1] / "cases" / "killing.py"
    run = [
        sys.executable,
        str(script),
        kind,
        str(tmp_path),
        str(seed),
        str(kills),
        *sorted(SEEN[kind]),
    ]
    done = subprocess.run(
        run, capture_output=True, text=True, timeout=120 + 60 * kills, check=False
    )
    assert done.returncode == 0, (seed, done.stderr)
    report = json.loads(done.stdout)
    print(kind, report)
    assert report["kills"] >= kills
    assert report["completed"] > 0
    assert set(report["seen"]) >= SEEN[kind], (seed, report)
