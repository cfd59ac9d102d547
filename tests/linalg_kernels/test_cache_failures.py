"""A cache of Numba that cannot be read or written: functions are compiled without it, with one warning per process."""

import errno
import importlib.util
import os
import subprocess
import sys
import warnings

import numba
import pytest

from adagrad_diff.linalg.kernels import _numba
from damage import at_most

SOURCE = "def triple(x):\n    return 3 * x\n"
MESSAGE = r"^Numba's cache of compiled functions in .* cannot be (read|written) \(.*\)\. .* NUMBA_CACHE_DIR"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A function that compiles a small kernel as a new process would, with its cache in a directory of the test."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "small_module.py"
    file.write_text(SOURCE)

    def fresh():
        monkeypatch.setattr(_numba, "_warned", False)
        spec = importlib.util.spec_from_file_location("small_module", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return _numba.plain(module.triple)

    return fresh


def cached(tmp_path, ending):
    (path,) = (tmp_path / "cache").glob(f"*/*.{ending}")
    return path


DAMAGE = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "truncated": lambda content: content[: len(content) // 2],
    "without the end": lambda content: content[:-1],
    "zeros": lambda content: bytes(len(content)),
    "garbage": lambda content: b"\xff\xfe garbage" * 20,
    "text": lambda content: b"<html>404 Not Found</html>",
}


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files(kernel, tmp_path, ending, damage):
    assert kernel()(2.0) == 6.0
    path = cached(tmp_path, ending)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    function = kernel()
    with pytest.warns(RuntimeWarning, match=MESSAGE) as found:
        assert (function(2.0), function(2)) == (6.0, 6)  # each signature reads the cache
    assert len(found) == 1
    assert str(path.parent) in str(found[0].message)
    assert found[0].filename == __file__


def test_a_valid_cache_is_used_without_a_warning(kernel):
    kernel()(2.0)
    function = kernel()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(2.0) == 6.0
    assert sum(function.stats.cache_hits.values()) == 1


def test_a_disk_that_is_full(kernel, tmp_path):
    function = kernel()
    with at_most(10), pytest.warns(RuntimeWarning, match=MESSAGE) as found:
        assert (function(2.0), function(2)) == (6.0, 6)
    assert len(found) == 1
    assert os.strerror(errno.EFBIG) in str(found[0].message)
    assert kernel()(2.0) == 6.0  # when there is space again, the cache is written


def test_a_directory_that_has_become_a_file(kernel, tmp_path):
    function = kernel()
    (directory,) = (tmp_path / "cache").iterdir()
    directory.rmdir()
    directory.write_text("")
    with pytest.warns(RuntimeWarning, match=MESSAGE):
        assert function(2.0) == 6.0


def test_no_directory_for_the_cache(kernel, monkeypatch):
    """Numba finds no place at all, as in a read-only environment."""
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "IPythonCacheLocator", raising=False)
    with pytest.warns(
        RuntimeWarning,
        match=r"^Numba's cache of compiled functions cannot be used .* NUMBA_CACHE_DIR",
    ):
        function = kernel()
    assert function(2.0) == 6.0


PUBLIC = """
import resource, warnings
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    from adagrad_diff import L1
    import numpy as np
    large = np.resize([3.0, -0.5], 1 << 16)  # small arrays need no compiled code
    print(L1(1.0).prox(large, 1.0)[:2].tolist())
    print(L1(1.0).prox(large.astype(np.float32), 1.0)[:2].tolist())
print(*(w.category.__name__ for w in found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no resource limits")
def test_the_package_on_a_full_disk(tmp_path):
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    run = subprocess.run(
        [sys.executable, "-c", PUBLIC], capture_output=True, text=True, check=False, env=environment
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.splitlines() == ["[2.0, -0.0]", "[2.0, -0.0]", "RuntimeWarning"]
