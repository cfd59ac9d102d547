"""Packages that only one door needs: a missing one is named with the extra that brings it."""

import subprocess
import sys

import numpy as np
import pytest

from adagrad_diff import AdaGrad, sweep
from adagrad_diff.common.extras import require
from user_losses import Bowl


def write(directory, monkeypatch, **modules):
    """Modules that can be imported until the test ends."""
    for name, text in modules.items():
        (directory / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(directory)


def test_what_is_there():
    assert require("json", "sweep") is sys.modules["json"]
    assert require("xml.dom", "sweep") is sys.modules["xml.dom"]


@pytest.mark.parametrize("name", ["nowhere", "nowhere.inside", "nowhere.inside.deep"])
def test_what_is_missing(name):
    with pytest.raises(ImportError) as caught:
        require(name, "paper")
    assert str(caught.value) == "This needs nowhere, which is not installed: pip install 'adagrad-diff[paper]'"
    assert caught.value.name == "nowhere"
    assert caught.value.__suppress_context__


def test_what_a_package_itself_is_missing(tmp_path, monkeypatch):
    """The package is installed: to say it is not would be wrong."""
    write(tmp_path, monkeypatch, needy="import nowhere")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'nowhere'$"):
        require("needy", "paper")


def test_what_a_package_with_a_longer_name_is_missing(tmp_path, monkeypatch):
    write(tmp_path, monkeypatch, needy_too="import need")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'need'$"):
        require("needy_too", "paper")


def test_what_is_broken(tmp_path, monkeypatch):
    write(tmp_path, monkeypatch, broken="1 / 0")
    with pytest.raises(ZeroDivisionError):
        require("broken", "paper")


@pytest.mark.peer
@pytest.mark.parametrize("package", ["xarray", "tqdm", "threadpoolctl"])
def test_a_sweep_without(package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    sentence = rf"^This needs {package}, which is not installed: pip install 'adagrad-diff\[sweep\]'$"
    with pytest.raises(ImportError, match=sentence):
        sweep(Bowl(), None, AdaGrad, [0.1], np.zeros((3, 1)), 2, checkpoint=tmp_path / "none")
    assert not (tmp_path / "none").exists()  # it is said before anything is done


SCRIPT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"xarray", "tqdm", "threadpoolctl", "pandas", "sklearn", "matplotlib", "pooch", "click"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from adagrad_diff import AdaGrad, L1, LAD, minimize, sweep
loss = LAD([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])
print(minimize(loss, penalty=L1(0.1), eta=0.1, max_iter=3).nit)
try:
    sweep(loss, None, AdaGrad, [0.1], [[0.0], [0.0]], 3)
except ImportError as error:
    print(error)
"""


def test_the_core_needs_none_of_them():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == [
        "3",
        "This needs xarray, which is not installed: pip install 'adagrad-diff[sweep]'",
    ]
