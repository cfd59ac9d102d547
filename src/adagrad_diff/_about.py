"""What bug reports need to know: versions of this package and its dependencies, and the machine."""

from __future__ import annotations

import platform
from importlib import metadata

from . import _threads
from ._version import __version__

PACKAGES = (
    *("numpy", "scipy", "numba", "xarray", "pandas", "scikit-learn", "matplotlib", "pyarrow"),
    *("click", "tqdm", "torch", "jax", "optax", "dask", "distributed"),
)


def version_line() -> str:
    """Return what `adagrad-diff --version` prints."""
    return f"adagrad-diff, version {__version__}"


def report() -> str:
    """Return what `adagrad-diff info` prints."""
    python, system = platform.python_version(), platform.platform(terse=True)
    lines = [f"adagrad-diff {__version__}, Python {python}, {system}, {_threads.cores()} cores"]
    for package in PACKAGES:
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            found = "not installed"
        lines.append(f"  {package:<14} {found}")
    return "\n".join(lines)
