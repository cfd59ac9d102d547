"""Run by `make test-wheel` in an environment that holds nothing but the wheel and its dependencies."""

import shutil
import subprocess
import sys
from importlib.metadata import files, metadata, requires
from pathlib import Path

import adagrad_diff

assert "numba" not in sys.modules, "import adagrad_diff must not import Numba"
assert "scipy" not in sys.modules, "import adagrad_diff must not import SciPy"

package = Path(adagrad_diff.__file__).parent
assert "site-packages" in str(package), package
assert (package / "py.typed").is_file()
assert (package / "experiments" / "page" / "page.html").is_file(), (
    "the report page's template is not in the wheel"
)
installed = {str(path) for path in files("adagrad-diff")}
foreign = {
    path for path in installed if not path.startswith(("adagrad_diff/", "adagrad_diff-", "../"))
}
assert not foreign, f"the wheel has more than the package in it: {foreign}"
assert not any("test" in Path(path).name.lower() for path in installed), "tests are in the wheel"
licences = metadata("adagrad-diff").get_all("License-File")
assert licences == ["LICENSE", "src/adagrad_diff/datasets/inside/NOTICE.md"], licences
assert all(any(path.endswith(f"licenses/{name}") for path in installed) for name in licences), (
    licences
)
core = sorted(r.split(">=")[0] for r in requires("adagrad-diff") if "extra" not in r)
assert core == ["numba", "numpy", "scipy"], core
for name in adagrad_diff.__all__:
    getattr(adagrad_diff, name)

result = adagrad_diff.minimize(
    adagrad_diff.LAD([[1.0, 0.0], [0.0, 1.0]], [1.0, -2.0]), penalty=adagrad_diff.L1(0.1), eta=0.5
)
assert abs(result.fun_best - 0.3) < 5e-3, result

A, b = adagrad_diff.datasets.load(
    "splice.t", download=False
)  # it comes with the package, and is checked by its sha256
assert (A.shape, int((b > 0).sum())) == ((2175, 60), 1131)
assert adagrad_diff.datasets.where("splice").is_file()


def printed(*arguments):
    """What a command prints: the first thing that somebody with a problem is asked for."""
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True
    ).stdout


text = printed("-c", "import adagrad_diff; help(adagrad_diff)")
assert "minimize(" in text, text
assert "AdaGradDiff" in text, text
command = shutil.which("adagrad-diff", path=str(Path(sys.executable).parent))
assert command, "the console script is not installed"
for ways in (["-m", "adagrad_diff"], [command]):
    assert printed(*ways, "--version") == f"adagrad-diff, version {adagrad_diff.__version__}\n"
    assert "numba" in printed(*ways, "info")
print(f"the wheel of adagrad-diff {adagrad_diff.__version__} imports, solves and tells its version")
