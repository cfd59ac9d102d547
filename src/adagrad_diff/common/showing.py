"""How objects show themselves: in one line, and not all of a large array."""

from __future__ import annotations

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
