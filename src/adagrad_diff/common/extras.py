"""Packages that only one door needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, extra: str) -> Any:
    """The module, or an error that says which extra of this package brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name or module}."):
            raise  # the package is there, but something it needs is not
        package = module.partition(".")[0]
        raise ModuleNotFoundError(
            f"This needs {package}, which is not installed: pip install 'adagrad-diff[{extra}]'",
            name=package,
        ) from None
