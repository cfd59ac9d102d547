"""Checks of hyperparameters. Arrays pass: under jit, vmap or `inject_hyperparams` their values are not known yet."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import _check
from ..penalties.group_root import BLOCKS

KNOWN = (int, float, np.generic, str, type(None))


def known(test: Callable[[Any, str, str], Any], value: Any, name: str, owner: str) -> None:
    """Apply a check to a value that is known now."""
    if isinstance(value, KNOWN):
        test(value, name, owner)


def fraction(value: Any, name: str, owner: str) -> None:
    """A number in [0, 1)."""
    if isinstance(value, bool | str | None) or not 0.0 <= value < 1.0:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number >= 0 and < 1. Got {value!r} instead."
        )


def moves(value: Any, name: str, owner: str) -> None:
    """A positive number, or infinity."""
    if not (isinstance(value, float) and value == math.inf):
        try:
            _check.positive(value, name, owner)
        except ValueError:
            sentence = f"The {name!r} parameter of {owner} must be a positive number, or math.inf for no bound."
            raise ValueError(f"{sentence} Got {_check.shown(value)} instead.") from None


def scaling(eps: Any, blocks: Any, accumulator_dtype: Any, max_move: Any, owner: str) -> Any:
    """The options that both scalings have; returns the dtype, if there is one."""
    known(_check.positive, eps, "eps", owner)
    known(moves, max_move, "max_move", owner)
    _check.one_of(blocks, BLOCKS, "blocks", owner)
    return floating(accumulator_dtype, "accumulator_dtype", owner)


def floating(value: Any, name: str, owner: str) -> Any:
    """A dtype of floating-point numbers, or None."""
    if value is None:
        return None
    try:
        dtype = jnp.dtype(value)
    except TypeError:
        dtype = None
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a floating-point dtype. Got {value!r} instead."
        )
    return dtype
