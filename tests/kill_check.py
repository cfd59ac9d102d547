"""A hundred kills (SIGKILL) at random moments, and what became of them: make kills.

Every run that was killed is called again until it ends. Its iterates, averages and history must be bitwise identical to those of
an uninterrupted run (gaps are computed again). No file may ever go back to an earlier iteration, and no other files may remain.
Otherwise this ends with an error. tests/cases/killing.py does it, tests/sweeps/test_kills.py does a few of them in the suite.

    python tests/kill_check.py [KILLS] [SEED]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARES = {"minimize": 0.4, "sweep": 0.25, "compare": 0.2, "reproduce": 0.15}
SCRIPT = Path(__file__).parent / "cases" / "killing.py"
HEAD = f"{'what':<12}{'kills':>7}{'same bits':>11}{'seconds':>9}  seen half done"


def check(kind: str, kills: int, seed: int) -> dict:
    """Kill one kind of run so many times; anything that is wrong ends it with an error."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        run = [sys.executable, str(SCRIPT), kind, place, str(seed), str(kills)]
        done = subprocess.run(
            run, capture_output=True, text=True, timeout=120 + 60 * kills, check=False
        )
    if done.returncode:
        sys.exit(f"{kind}, seed {seed}: something was lost, or is not the same.\n{done.stderr}")
    return json.loads(done.stdout) | {"seconds": time.perf_counter() - begin}


def main(kills: int = 100, seed: int | None = None) -> None:
    seed = int.from_bytes(os.urandom(4)) if seed is None else seed
    print(f"Seed {seed}.\n{HEAD}")
    total = 0
    for kind, share in SHARES.items():
        found = check(kind, max(1, round(share * kills)), seed)
        total += found["kills"]
        row = f"{kind:<12}{found['kills']:>7}{found['completed']:>11}{found['seconds']:>9.0f}"  # runs that came to their end
        print(f"{row}  {', '.join(found['seen'])}", flush=True)
    print(
        f"{total} kills. Every run went on and ended with the bits of one in one go; nothing was lost or left behind."
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
