"""Old public names: renamed ones work with a DeprecationWarning, removed ones say what to do instead."""

import importlib
import subprocess
import sys
import types

import pytest

import adagrad_diff
from adagrad_diff import _deprecated

MODULES = {
    old: new
    for old, new in _deprecated.RENAMED.items()
    if new.rpartition(".")[2] not in adagrad_diff.__all__
}


@pytest.fixture(autouse=True)
def forgotten():
    """No old module has been imported before, and none is left behind."""

    def forget():
        for old in _deprecated.RENAMED:
            sys.modules.pop(old, None)
            vars(adagrad_diff).pop(old.rpartition(".")[2], None)

    forget()
    yield
    forget()


@pytest.mark.parametrize(("old", "new"), MODULES.items())
def test_renamed_modules(old, new):
    expected, words = importlib.import_module(new), f"{old} is now {new}"
    with pytest.warns(DeprecationWarning, match=words) as caught:
        module = getattr(adagrad_diff, old.rpartition(".")[2])
    assert caught[0].filename == __file__
    assert module is expected
    with pytest.warns(DeprecationWarning, match=words) as caught:
        exec(compile(f"import {old}", "user.py", "exec"))
    assert caught[0].filename == "user.py"
    imported = sys.modules[old]
    assert imported.__all__ == expected.__all__
    assert all(getattr(imported, name) is getattr(expected, name) for name in expected.__all__)


def test_renamed_modules_in_a_new_process():
    """Nothing has imported the new module before."""
    code = "import warnings; warnings.simplefilter('ignore'); import adagrad_diff.kernels"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_of_renamed_modules_can_be_imported():
    with pytest.warns(
        DeprecationWarning, match=r"adagrad_diff\.solve is now adagrad_diff\.solvers"
    ):
        from adagrad_diff.solve import minimize
    assert minimize is adagrad_diff.minimize
    with pytest.raises(ModuleNotFoundError, match="is not a package"):
        importlib.import_module("adagrad_diff.solve.state")


def test_renamed_names(monkeypatch):
    with pytest.warns(DeprecationWarning, match="finish is now adagrad_diff.polish"):
        assert adagrad_diff.finish is adagrad_diff.polish
    monkeypatch.setitem(
        _deprecated.RENAMED,
        "adagrad_diff.rules.AdaGradDifference",
        "adagrad_diff.rules.AdaGradDiff",
    )
    with pytest.warns(DeprecationWarning, match="AdaGradDifference is now .*AdaGradDiff"):
        assert adagrad_diff.rules.AdaGradDifference is adagrad_diff.AdaGradDiff


@pytest.mark.parametrize("old", _deprecated.REMOVED)
def test_removed_names(old):
    module, _, name = old.rpartition(".")
    words = rf"{old} was removed in version 0\.3\. Rules now define init and update"
    with pytest.raises(ImportError, match=words):
        exec(f"from {module} import {name}")
    with pytest.raises(ImportError, match=words):
        getattr(importlib.import_module(module), name)


def test_other_names_are_unknown():
    for module in (adagrad_diff, adagrad_diff.rules):
        with pytest.raises(
            AttributeError, match=f"module '{module.__name__}' has no attribute 'No'"
        ):
            module.No  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'No'"):
        exec("from adagrad_diff.rules import No")


def test_new_names_are_public():
    for new in _deprecated.RENAMED.values():
        module, _, name = new.rpartition(".")
        found = getattr(importlib.import_module(module), name, None) or importlib.import_module(new)
        assert isinstance(found, types.ModuleType) or name in sys.modules[module].__all__


def test_the_old_name_of_the_slopes_of_two_lines():
    with pytest.warns(DeprecationWarning, match="Mine defines 'jump'. Call it 'slopes'") as caught:

        class Mine(adagrad_diff.LAD):
            @staticmethod
            def jump(b, theta):
                return -2.0, 2.0

    assert caught[0].filename == __file__
    assert (Mine.piecewise_linear, Mine.slopes(0.0, 0.0)) == (True, (-2.0, 2.0))
