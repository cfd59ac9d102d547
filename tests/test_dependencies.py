"""What the package imports is what it says it needs."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import adagrad_diff

PACKAGE = Path(adagrad_diff.__file__).parent
PROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = {
    "torch": "torch",
    "optax": "optax",
    "sklearn": "sklearn",
    "datasets": "sklearn",
}
EXTRAS |= {
    "dask": "dask",
    "experiments": "paper",
    "cli": "cli",
    "sweeps": "sweep",
    "_threads.py": "sweep",
    "_about.py": "sweep",
    "__main__.py": "cli",
}  # extras
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
OPTIONAL = {"dask", "distributed", "google"}  # looked for, and done without


def imported(path):
    """The libraries that a file imports, wherever it does so, or asks `require` for."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") == "require"
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node.args[0].value.partition(".")[0]


def declared(project, extra=None):
    entries = project["optional-dependencies"][extra] if extra else project["dependencies"]
    for entry in entries:
        if inner := re.fullmatch(r"adagrad-diff\[(\w+)\]", entry):
            yield from declared(project, inner[1])
        else:
            yield re.match(r"[\w-]+", entry)[0]


@pytest.mark.skipif(not PROJECT.exists(), reason="only the package is here")
def test_imports_are_declared():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    seen = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE)
        extra = EXTRAS.get(file.as_posix()) or EXTRAS.get(file.parts[0])
        known = {*declared(project), *(declared(project, extra) if extra else ())}
        found = {DISTRIBUTIONS.get(name, name) for name in imported(path)} - {
            *sys.stdlib_module_names,
            "adagrad_diff",
        }
        place = f"optional-dependencies.{extra}" if extra else "dependencies"
        for name in found - OPTIONAL - known:
            pytest.fail(
                f"{file} imports {name}, which is not in project.{place} of pyproject.toml: list it there, or name the extra "
                f"of this package in EXTRAS of tests/test_dependencies.py, or do without."
            )
        seen += len(found)
    assert seen > 100  # it has looked
