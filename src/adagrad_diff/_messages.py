"""How values appear in messages and reprs, warnings at the line of the caller, and missing optional packages."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import Any

import numpy as np

SHOWN_NUMBERS = 6  # of an array, at most


def short(value: Any) -> str:
    """A value as its owner's `repr` shows it.

    Examples
    --------
    >>> short(np.float64(0.1)), short(np.array([0, 1])), short(np.zeros((3, 4)))
    ('0.1', 'array([0, 1])', 'array of shape (3, 4)')
    """
    if isinstance(value, np.ndarray):
        return repr(value) if 0 < value.ndim < 2 and value.size <= SHOWN_NUMBERS else _scalar(value)
    return repr(value.item()) if isinstance(value, np.generic) else repr(value)


def call(owner: Any, **fields: Any) -> str:
    """As the call that makes such an object: L1(lam=0.1)."""
    return f"{type(owner).__name__}({', '.join(f'{name}={short(value)}' for name, value in fields.items())})"


def counted(number: int, what: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "iteration"), counted(20, "iteration")
    ('1 iteration', '20 iterations')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def _scalar(value: np.ndarray) -> str:
    return repr(value.item()) if value.ndim == 0 else f"array of shape {value.shape}"


PACKAGE = os.path.join(os.path.dirname(__file__), "")


def warn(message: str, category: type[Warning], through: str = PACKAGE) -> None:
    """Warn at the line of the user: outside this package, the directory `through` and imports."""
    frame, inner = sys._getframe(1), (PACKAGE, through, "<frozen importlib")
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inner):
        frame = frame.f_back
    place, names = (frame.f_code.co_filename, frame.f_lineno), frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, *place, names["__name__"], registry)


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
