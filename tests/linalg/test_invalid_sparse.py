"""Invalid sparse matrices raise a ValueError at every entry point instead of ending the interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

import invalid_sparse

SCRIPT = Path(invalid_sparse.__file__)


def check(kind, beginnings):
    run = subprocess.run(
        [sys.executable, SCRIPT, kind], capture_output=True, text=True, check=False
    )
    lines = [line.split("\t") for line in run.stdout.splitlines()]
    assert run.returncode == 0, (run.returncode, lines[-1:], run.stderr[-2000:])
    assert len(lines) >= 2 * len(invalid_sparse.DAMAGE)
    wrong = []
    for entry, damage, outcome in lines:
        if kind == "dask" and entry.endswith("predict"):
            continue  # Dask stacks the chunks with SciPy before an estimator sees them
        _, kind_of_matrix = invalid_sparse.DAMAGE[damage]
        beginning = tuple(f"{name} is not a valid {kind_of_matrix} matrix: " for name in beginnings)
        if not outcome.startswith(beginning):
            wrong.append((entry, damage, outcome))
    assert not wrong


def test_losses():
    check("losses", ("A", "Q", "Block 0 of Blocks (rows 0 to 39)"))


@pytest.mark.peer
def test_estimators():
    pytest.importorskip("sklearn")
    check("sklearn", ("X", "Block 0 of Blocks (rows 0 to 39)"))


@pytest.mark.peer
def test_dask_collections():
    pytest.importorskip("dask")
    check("dask", ("X", "Block 0 of A", "Block 0 of X"))
