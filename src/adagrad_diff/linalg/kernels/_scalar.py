"""The scalar function of a loss, looked at before it is compiled into kernels: few would understand what Numba says then."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit, types

ADVICE = "It is a static method of three numbers, made of arithmetic, the module math and what Numba knows of NumPy."


def checked(scalar: Any) -> Callable[..., Any]:
    """The Python function of a scalar loss; TypeError with one sentence if it does not compile, or gives something else."""
    function: Callable[..., Any] = getattr(
        scalar, "py_func", scalar
    )  # of one that is compiled already
    if getattr(function, "__module__", "").startswith("adagrad_diff.losses"):
        return function  # ours
    name = f"The scalar function {getattr(function, '__qualname__', repr(function)).rpartition('<locals>.')[2]}"
    if not inspect.isfunction(function) or len(inspect.signature(function).parameters) != 3:
        remedy = " Put @staticmethod above it." if inspect.ismethod(scalar) else ""
        raise TypeError(f"{name} must be a function of three numbers, scalar(z, b, theta).{remedy}")
    try:
        dispatcher: Any = njit(function)
        dispatcher.compile((types.float64,) * 3)
    except Exception as error:
        raise TypeError(f"{name} cannot be compiled: {_essence(error)}. {ADVICE}") from error
    answer = dispatcher.nopython_signatures[0].return_type
    if not _is_pair(answer):
        raise TypeError(
            f"{name} must return two numbers, the value and the derivative. Got {_words(answer)} instead."
        )
    return function


def _is_pair(answer: Any) -> bool:
    real = types.Integer | types.Float | types.Boolean
    parts = tuple(getattr(answer, "types", ()))
    return (
        isinstance(answer, types.BaseTuple)
        and len(parts) == 2
        and all(isinstance(part, real) for part in parts)
    )


def _words(answer: Any) -> str:
    if isinstance(answer, types.Optional):
        return f"none or {_words(answer.type)}"
    if not isinstance(answer, types.BaseTuple):
        return str(answer)
    return str(answer) if len(answer) == 2 and not _is_pair(answer) else f"a tuple of {len(answer)}"


def _essence(error: Exception) -> str:
    """The line of Numba's message that says it, and the line of the user's code it is about."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Failed in nopython mode")]
    said = lines[0].removesuffix(". Raised from None") if lines else type(error).__name__
    if said.endswith("for signature:"):  # which one is in the next line
        said = f"there is no {next((line[4:] for line in lines if line.startswith('>>> ')), said)}"
    place = re.search(r'File "(.+)", line (\d+)', str(error))
    return (
        f"{said.rstrip('.')} (line {place[2]} of {Path(place[1]).name})"
        if place
        else said.rstrip(".")
    )
