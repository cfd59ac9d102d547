"""Arrays on disk that memory has no room for."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = [pytest.mark.peer, pytest.mark.slow]
SAMPLES, FEATURES = 300_000, 125  # 300 MB
ROOM = 220 << 20  # bytes that the process may have beside what it has when it begins
PROGRAM = f"""
import resource, sys
import numpy as np, zarr
import dask.array
from adagrad_diff import LAD, minimize
from adagrad_diff.dask import source

x, b = np.ones({FEATURES}), np.zeros({SAMPLES})
LAD(np.zeros((3, {FEATURES})), b[:3]).value_and_grad(x)  # everything is imported and compiled
dask.array.ones((4, 4), chunks=2).sum().compute(scheduler="threads")
arrays = [np.load(sys.argv[1], mmap_mode="r"), zarr.open(sys.argv[2], mode="r")]
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + {ROOM}, used + {ROOM}))
try:
    np.empty(arrays[0].shape)
    print("there is room for all of it")
except MemoryError:
    pass
for A in arrays:
    loss = LAD(source(A), b)
    print(float(loss.value_and_grad(x)[0]).hex(), minimize(loss, x, eta=0.1, max_iter=2).nit)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_more_than_there_is_room_for(tmp_path):
    zarr = pytest.importorskip("zarr")
    rows = (
        np.arange(SAMPLES)[:, None] % 7 + np.arange(FEATURES) % 5.0
    )  # whole numbers: sums have no rounding
    np.save(tmp_path / "A.npy", rows)
    stored = zarr.open(
        str(tmp_path / "A.zarr"), mode="w", shape=rows.shape, chunks=(5_000, FEATURES), dtype="f8"
    )
    stored[:] = rows
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "A.npy"), str(tmp_path / "A.zarr")]
    environment = {
        **os.environ,
        "MALLOC_ARENA_MAX": "2",
    }  # Zarr has a dozen threads, and each would keep what it has freed
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        value, iterations = line.split()
        assert float.fromhex(value) == pytest.approx(rows.sum() / SAMPLES, rel=1e-12)
        assert iterations == "2"
    assert len(done.stdout.splitlines()) == 2
