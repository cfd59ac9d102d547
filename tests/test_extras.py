"""Optional packages: a missing one is named with the extra that brings it."""

import subprocess
import sys

import numpy as np
import pytest

from adagrad_diff import AdaGrad, sweep
from looping import looped
from user_losses import Bowl


def try_to_sweep(directory):
    """Sweep, which needs optional packages before anything else is done."""
    try:
        sweep(Bowl(), None, AdaGrad, [0.1], np.zeros((3, 1)), 2, checkpoint=directory / "none")
    finally:
        assert not (directory / "none").exists()


@pytest.mark.peer
@looped("package", ["xarray", "tqdm", "threadpoolctl"])
def test_a_missing_package(package, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, package, None)  # as if it were not installed
        with pytest.raises(ImportError) as caught:
            try_to_sweep(tmp_path)
    assert (
        str(caught.value)
        == f"This needs {package}, which is not installed: pip install 'adagrad-diff[sweep]'"
    )
    assert caught.value.name == package
    assert caught.value.__suppress_context__


@pytest.mark.peer
@looped(
    ("content", "error", "sentence"),
    [
        ("import nowhere", ModuleNotFoundError, "^No module named 'nowhere'$"),
        ("import xarr", ModuleNotFoundError, "^No module named 'xarr'$"),
        ("1 / 0", ZeroDivisionError, "division by zero"),
    ],
)
def test_a_broken_package(content, error, sentence, monkeypatch, tmp_path):
    """The package is installed, so the message must not say that it is missing."""
    (tmp_path / "xarray.py").write_text(content)
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "xarray", raising=False)
        patch.syspath_prepend(tmp_path)
        with pytest.raises(error, match=sentence):
            try_to_sweep(tmp_path)


SCRIPT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"xarray", "tqdm", "threadpoolctl", "pandas", "sklearn", "matplotlib", "click"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from adagrad_diff import L1, LAD, minimize
print(minimize(LAD([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]), penalty=L1(0.1), eta=0.1, max_iter=3).nit)
"""


@pytest.mark.slow
def test_the_core_needs_none_of_them():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "3\n"
