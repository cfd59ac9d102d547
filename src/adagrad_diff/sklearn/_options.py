"""The parameters that all estimators have, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check


def step_size(value: Any, owner: str) -> float | str:
    """ "auto" or a positive number"""
    if isinstance(value, str) and value == "auto":
        return value
    try:
        return _check.positive(value, "eta", owner)
    except ValueError:
        raise ValueError(
            f"The 'eta' parameter of {owner} must be 'auto' or a positive number. Got {_check.shown(value)} instead."
        ) from None


def verbosity(value: Any, owner: str) -> bool:
    """Whether to print anything."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    try:
        return _check.count(value, "verbose", owner) > 0
    except ValueError:
        raise ValueError(
            f"The 'verbose' parameter of {owner} must be an integer >= 0, or True or False. Got {_check.shown(value)} instead."
        ) from None
