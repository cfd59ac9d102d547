"""The package as a whole: what importing it costs, what it exports, and that its examples are true."""

import doctest
import importlib
import importlib.metadata
import importlib.resources
import importlib.util
import inspect
import pkgutil
import subprocess
import sys

import pytest

import adagrad_diff

NAMES = [name for name in adagrad_diff.__all__ if name != "__version__"]
FOUND = [found.name for found in pkgutil.walk_packages(adagrad_diff.__path__, "adagrad_diff.")]
MODULES = [
    "adagrad_diff",
    *(name for name in FOUND if not name.endswith("__main__")),
]  # importing that runs the command line
OPTIONAL = {
    "torch": "torch",
    "optax": "optax",
    "jax": "jax",
    "dask": "dask",
    "sklearn": "sklearn",
    "cli": "click",
}
NEEDY = (
    "sweeps",
    "cli",
    "datasets",
    "paper",
    "theory",
    "study",
)  # whose examples need more than the core dependencies
PEERS = [name for name in MODULES if name.split(".")[1:2] and name.split(".")[1] in NEEDY]
CORE = [name for name in MODULES if name not in PEERS]
HEAVY = (
    "scipy",
    "numba",
    "llvmlite",
    "torch",
    "jax",
    "optax",
    "sklearn",
    "matplotlib",
    "dask",
    "pandas",
    "click",
    "tqdm",
)


def python(code):
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def load(name):
    """A module, or None if it needs a library that is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.removeprefix("adagrad_diff.").split(".")[0]
        if package in OPTIONAL and not importlib.util.find_spec(OPTIONAL[package]):
            return None
        raise


def test_import_is_light_and_dir_is_complete():
    """In a fresh interpreter, one after the other."""
    light = f"print(*(m for m in {HEAVY} if m in sys.modules))"
    code = f"import sys, adagrad_diff as a; a.__version__; {light}; names = dir(a)"
    code += "; print(*(n for n in a.__all__ if n not in names)); from adagrad_diff import *"
    assert python(code + "; print(*(n for n in a.__all__ if n not in globals()))") == []


def test_public_names_are_documented():
    for name in NAMES:
        thing = getattr(adagrad_diff, name)
        assert thing.__doc__, f"{name} has no docstring"
        assert thing.__doc__.strip()[0].isupper() or thing.__doc__.strip()[0] == "(", (
            f"{name}: begin with a capital"
        )
        assert name in dir(adagrad_diff)
        if not inspect.isclass(thing):
            continue
        assert thing.__name__ == name
        undocumented = [
            method
            for method, function in inspect.getmembers(thing, inspect.isfunction)
            if not method.startswith("_")
            and not inspect.getdoc(function)
            and method != "scalar"
            and not any(inspect.getdoc(getattr(base, method, None)) for base in thing.__mro__)
        ]
        assert not undocumented, f"write docstrings for {undocumented} of {name}"


def test_all_and_dir():
    assert len(set(adagrad_diff.__all__)) == len(adagrad_diff.__all__)
    listed = dir(adagrad_diff)
    assert listed == sorted(set(listed))
    assert {*adagrad_diff.__all__, "duality", "losses", "penalties", "rules"} <= set(listed)


@pytest.mark.parametrize(
    ("part", "base"), [("rules", "Rule"), ("losses", "Loss"), ("penalties", "Penalty")]
)
def test_every_class_of_the_parts_is_listed(part, base):
    """What stands in a file of its own is what users are to find: no rule, loss or penalty hides in a module."""
    package = getattr(adagrad_diff, part)
    for found in pkgutil.iter_modules(package.__path__):
        if found.name.startswith("_") or found.name in ("base", "linear", "foreign"):
            continue
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for name, thing in vars(module).items():
            ours = (
                inspect.isclass(thing)
                and issubclass(thing, getattr(package, base))
                and thing.__module__ == module.__name__
            )
            if ours and not name.startswith("_"):
                assert name in package.__all__, (
                    f"import {name} in src/adagrad_diff/{part}/__init__.py and list it in __all__"
                )
                assert getattr(adagrad_diff, name) is thing


def test_help_loads_no_integration():
    """On a core installation it would fail; on a full one it would take a minute."""
    code = f"import pydoc, sys; sys.modules |= dict.fromkeys({tuple(OPTIONAL.values())}); import adagrad_diff"
    assert {"minimize(loss:", "AdaGradDiff(eta:"} <= set(
        python(f"{code}; print(pydoc.render_doc(adagrad_diff, renderer=pydoc.plaintext))")
    )


@pytest.mark.parametrize("name", ["minimise", "Lasso", "_nothing", "__nothing__"])
def test_unknown_names(name):
    with pytest.raises(AttributeError, match=f"module 'adagrad_diff' has no attribute '{name}'"):
        getattr(adagrad_diff, name)
    assert not hasattr(adagrad_diff, name)


def test_unknown_names_cannot_be_imported():
    with pytest.raises(ImportError, match="cannot import name 'minimise' from 'adagrad_diff'"):
        exec("from adagrad_diff import minimise")


def test_module_minimize_does_not_hide_the_function():
    importlib.import_module("adagrad_diff.solvers.minimize")
    assert inspect.isfunction(adagrad_diff.minimize)
    assert inspect.isfunction(adagrad_diff.iterate)


def test_typed_and_versioned():
    assert importlib.resources.files("adagrad_diff").joinpath("py.typed").is_file()
    assert importlib.metadata.version("adagrad-diff") == adagrad_diff.__version__


@pytest.mark.parametrize(
    "modules", [CORE, pytest.param(PEERS, marks=pytest.mark.peer)], ids=["core", "peers"]
)
def test_examples(modules, request):
    if modules is PEERS:
        request.getfixturevalue("unsaved")
    for module in filter(None, map(load, modules)):
        assert module.__doc__, f"{module.__name__} has no docstring"
        assert doctest.testmod(module).failed == 0, (
            f"an example of {module.__name__} does not print what it says"
        )


def test_examples_are_found():
    """So that the test above cannot pass by looking at nothing."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = {
        name: sum(len(t.examples) for t in finder.find(load(name)))
        for name in MODULES
        if load(name)
    }
    assert examples["adagrad_diff.solvers.minimize"] >= 5
    for name in ("Hinge", "L1", "AdaGradDiff", "minimize", "iterate", "scipy_method", "load_state"):
        assert ">>> " in getattr(adagrad_diff, name).__doc__, name


def test_status_codes_are_documented_numbers():
    codes = {code.name: int(code) for code in adagrad_diff.Status}
    assert codes == {
        "CONVERGED": 0,
        "MAX_ITER": 1,
        "MAX_TIME": 2,
        "CALLBACK": 3,
        "INTERRUPTED": 4,
        "NOT_FINITE": 5,
        "DIVERGED": 6,
        "STALLED": 7,
    }
    assert issubclass(adagrad_diff.ConvergenceWarning, RuntimeWarning)
    assert issubclass(adagrad_diff.ConvergenceError, RuntimeError)
