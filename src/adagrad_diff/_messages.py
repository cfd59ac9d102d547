"""Values in messages and reprs, warnings at the line of the user, and missing optional packages."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import Any

import numpy as np

SHOWN_NUMBERS = 6  # the longest array that is shown with its entries


def short(value: Any) -> str:
    """Return a value as the repr of its owner shows it.

    Examples
    --------
    >>> short(np.float64(0.1)), short(np.array([0, 1])), short(np.zeros((3, 4)))
    ('0.1', 'array([0, 1])', 'array of shape (3, 4)')
    """
    if isinstance(value, np.ndarray) and (value.ndim > 1 or value.size > SHOWN_NUMBERS):
        return f"array of shape {value.shape}"
    scalar = isinstance(value, np.generic | np.ndarray) and value.ndim == 0
    return repr(value.item() if scalar else value)


def call(owner: Any, **fields: Any) -> str:
    """Return the call that makes such an object, such as L1(lam=0.1)."""
    arguments = ", ".join(f"{name}={short(value)}" for name, value in fields.items())
    return f"{type(owner).__name__}({arguments})"


def counted(number: int, what: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> counted(1, "iteration"), counted(20, "iteration")
    ('1 iteration', '20 iterations')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


PACKAGE = os.path.join(os.path.dirname(__file__), "")


def warn(message: str, category: type[Warning], through: str = PACKAGE) -> None:
    """Warn at the line of the user: outside this package, `through` and frozen modules."""
    frame, inner = sys._getframe(1), (PACKAGE, through, "<frozen ")
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inner):
        frame = frame.f_back
    place, names = (frame.f_code.co_filename, frame.f_lineno), frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, *place, names["__name__"], registry)


def require(module: str, extra: str) -> Any:
    """Import a module, or raise an error that says which extra of this package installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name or module}."):
            raise  # the package is installed, but one of its dependencies is not
        package = module.partition(".")[0]
        raise ModuleNotFoundError(
            f"This needs {package}, which is not installed: pip install 'adagrad-diff[{extra}]'",
            name=package,
        ) from None
