"""Checks of the parameters that some rules have beside eta and eps."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check


def positive(rule: Any, *names: str) -> None:
    """Positive numbers, or a sentence."""
    for name in names:
        object.__setattr__(
            rule, name, _check.positive(getattr(rule, name), name, type(rule).__name__)
        )


def fraction(rule: Any, *names: str) -> None:
    """Numbers in [0, 1), or a sentence."""
    within(rule, names, 0.0, 1.0, "a number in [0, 1)", lambda value: value < 1.0)


def within(
    rule: Any, names: tuple[str, ...], low: float, high: float, wanted: str, also: Any = None
) -> None:
    """Numbers between low and high, or a sentence."""
    for name in names:
        given, owner = getattr(rule, name), type(rule).__name__
        try:
            value = _check.number(given, name, owner)
        except ValueError:
            value = np.nan
        if not low <= value <= high or (also is not None and not also(value)):
            raise ValueError(
                f"The {name!r} parameter of {owner} must be {wanted}. Got {_check.shown(given)} instead."
            )
        object.__setattr__(rule, name, value)
