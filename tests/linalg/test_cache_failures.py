"""A cache of Numba that cannot be read or written: functions are compiled without it, with one warning per process."""

import errno
import importlib.util
import os
import subprocess
import sys
import warnings

import numba
import pytest

from adagrad_diff.linalg import _numba
from adagrad_diff.linalg.compiling import plain
from damage import at_most

SOURCE = "def triple(x):\n    return 3 * x\n"
MESSAGE = r"^Numba's cache of compiled functions in .* cannot be used \(.*\)\. .* NUMBA_CACHE_DIR"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A function that compiles a small kernel as a new process would, with its cache in a directory of the test."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "small_module.py"
    file.write_text(SOURCE)

    def fresh():
        monkeypatch.setattr(_numba, "_cache_works", True)
        spec = importlib.util.spec_from_file_location("small_module", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return plain(module.triple)

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
    assert sum(_numba.machine_code(function, True).stats.cache_hits.values()) == 1


def test_a_disk_that_is_full(kernel, tmp_path):
    function = kernel()
    with at_most(10), pytest.warns(RuntimeWarning, match=MESSAGE) as found:
        assert (function(2.0), function(2)) == (6.0, 6)
    assert len(found) == 1
    assert os.strerror(errno.EFBIG) in str(found[0].message)
    assert kernel()(2.0) == 6.0  # when there is space again, the cache is written


def test_a_directory_that_has_become_a_file(kernel, tmp_path):
    function = kernel()
    _numba.machine_code(function, True)
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
        assert kernel()(2.0) == 6.0


PUBLIC = """
import resource, warnings
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    from adagrad_diff import LAD
    import numpy as np
    for dtype in (np.float32, np.float64):  # small arrays need no compiled code
        A = np.ones((1 << 16, 1), dtype)
        print(LAD(A, np.zeros(1 << 16)).value_and_grad(np.ones(1, dtype))[0])
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
    assert run.stdout.splitlines() == ["1.0", "1.0", "RuntimeWarning"]


SLOW_DISK = """
import sys, time
from pathlib import Path
import numpy as np
from numba.core.caching import IndexDataCacheFile
from adagrad_diff.linalg.compiling import plain

save_index, directory = IndexDataCacheFile._save_index, Path(sys.argv[1])
sys.path.insert(0, sys.argv[1])
import small_module


def together(*args):
    # Both processes have read the index. Without a lock, the index of float32 and the code for
    # float64 are written last.
    (directory / f"{sys.argv[2]}.arrived").touch()
    latest = time.time() + 8.0
    while len(list(directory.glob("*.arrived"))) < 2 and time.time() < latest:
        time.sleep(0.01)
    time.sleep(0.5 if sys.argv[2] == "float32" else 0.0)
    save_index(*args)
    time.sleep(0.0 if sys.argv[2] == "float32" else 1.0)


IndexDataCacheFile._save_index = together
kernel = plain(small_module.triple)
values = [kernel(np.ones(2, dtype)) for dtype in sys.argv[2:]]
print(*(f"{value[0]:g} {value.dtype}" for value in values))
"""


@pytest.mark.slow
def test_processes_that_compile_for_two_dtypes_at_the_same_time(tmp_path):
    """Numba alone mixes up their files: a later process gets code for the other dtype."""
    source = "def triple(x):\n    return x.dtype.type(3) * x\n"
    (tmp_path / "small_module.py").write_text(source)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def start(*dtypes):
        command = [sys.executable, "-W", "error", "-c", SLOW_DISK, str(tmp_path), *dtypes]
        return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE)

    processes = [start("float32"), start("float64")]
    assert [process.communicate()[0] for process in processes] == ["3 float32\n", "3 float64\n"]
    assert start("float32", "float64").communicate()[0] == "3 float32 3 float64\n"
