"""What type checkers make of the package: a user's script passes mypy --strict, and a misspelt name does not."""

import subprocess
import sys
from pathlib import Path

import pytest

import adagrad_diff

pytest.importorskip("mypy")
pytestmark = pytest.mark.peer


# The package is looked at as if it were installed: without a word about its own code.
CONFIGURATION = """
[mypy]
[mypy-scipy.*]
ignore_missing_imports = True
[mypy-adagrad_diff,adagrad_diff.*]
follow_imports = silent
"""


def mypy(tmp_path, *paths):
    """What mypy --strict says of scripts that were written against the package as it is installed."""
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", tmp_path / "mypy.ini"]
    environment = {"MYPYPATH": str(Path(adagrad_diff.__file__).parents[1]), "PATH": ""}
    done = subprocess.run(
        [*command, "--cache-dir", tmp_path / "cache", *paths], capture_output=True, text=True, env=environment, check=False
    )
    return done.stdout + done.stderr


def test_a_users_script(tmp_path):
    names = "".join(f"from adagrad_diff import {name}\nreveal_type({name})\n" for name in adagrad_diff.__all__)
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
