"""Commands in an interpreter that lacks some packages."""

import json
import subprocess
import sys

WITHOUT = """
import contextlib, io, json, sys

for name in sys.argv[1].split():
    sys.modules[name] = None  # as if it were not installed
from adagrad_diff.__main__ import main

for sys.argv in json.loads(sys.argv[2]):
    code = 0
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def without(packages, *commands, cwd):
    """What commands end with, print and complain of, one after another in an interpreter that lacks the packages."""
    calls = json.dumps([["adagrad-diff", *command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, packages, calls],
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
    )
    assert "Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
