"""What type checkers make of the package: a user's script passes mypy --strict, and a misspelt name does not."""

import subprocess
import sys
from pathlib import Path

import pytest

import adagrad_diff

pytest.importorskip("mypy")
pytestmark = [pytest.mark.peer, pytest.mark.slow]

ROOT = Path(__file__).parents[1]


def mypy(tmp_path, *paths):
    """What mypy says of scripts, as strictly as of the package. Where the linter has been, its cache has what they import."""
    cache = ROOT / ".mypy_cache" if (ROOT / ".mypy_cache").exists() else tmp_path / "cache"
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        ROOT / "pyproject.toml",
        "--cache-dir",
        cache,
    ]
    done = subprocess.run([*command, *paths], capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stdout + done.stderr


def test_a_users_script(tmp_path):
    names = "".join(
        f"from adagrad_diff import {name}\nreveal_type({name})\n" for name in adagrad_diff.__all__
    )
    wrong = "from adagrad_diff import minimise\nL1(0.1).nothing\n"
    script = tmp_path / "names.py"
    script.write_text(names + wrong)
    found = mypy(tmp_path, Path(__file__).with_name("typed_user.py"), script)
    errors = [line for line in found.splitlines() if "error:" in line]
    assert not [line for line in errors if "typed_user.py" in line], found
    assert len(errors) == 2, found
    assert '"minimise"' in errors[0]
    assert '"L1" has no attribute "nothing"' in errors[1]
    assert 'type is "Any"' not in found, found
