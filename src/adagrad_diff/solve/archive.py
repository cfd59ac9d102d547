"""A state as a file: arrays by name and a header of JSON, without pickle; what is read is checked before it is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .state import State

FORMAT = "adagrad-diff state 3"
HEADER = ("rule", "batched", "problem")  # kept as JSON; everything else is an array
NUMBERS = (
    "n",
    "f",
    "phi",
    "fun_best",
    "f_first",
    "g_first",
    "norm",
    "failed",
    "gain",
)  # one per trajectory
LIKE_X = ("x", "g", "x_sum", "x_best")  # of the shape of x
ROOMS = ("memory", "notes")  # arrays by names of their own
# What a state's arrays must be: the kernels trust them, so a file that was tampered with must not reach them.
DTYPES = {"n": "iu", "failed": "b"}  # and all others "f"
SIGNED = (
    "x",
    "f",
    "phi",
    "g",
    "x_sum",
    "x_best",
    "fun_best",
    "f_first",
)  # the others are not negative


def pack(state: State) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is kept of a state: JSON, and arrays by name."""
    header = {name: getattr(state, name) for name in HEADER}
    values = {name: getattr(state, name) for name in (*NUMBERS, *LIKE_X)}
    arrays = {name: np.asarray(value) for name, value in values.items() if value is not None}
    for room in ROOMS:
        arrays |= {f"{room}.{name}": array for name, array in getattr(state, room).items()}
    if state.trajectories is not None:
        header["trajectories"], inner = pack(state.trajectories)
        arrays |= {f"trajectories.{name}": array for name, array in inner.items()}
    return header, arrays


def unpack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[dict[str, Any], Any]:
    """The inverse: the fields of a state, and of its trajectories a pair (header, arrays), if there are any."""
    inner = header.pop("trajectories", None)
    parts: dict[str, dict[str, np.ndarray]] = {
        "": {},
        "trajectories": {},
        **{room: {} for room in ROOMS},
    }
    for name, array in arrays.items():
        room, _, rest = name.partition(".")
        parts[room if rest else ""][rest or name] = array
    if unknown := [*({*parts[""]} - {*NUMBERS, *LIKE_X}), *({*header} - {*HEADER})]:
        raise ValueError(f"it has {unknown[0]!r}, which is no part of a state file")
    values: dict[str, Any] = {"x_sum": np.array(None), "x_best": np.array(None), **parts[""]}
    values = {name: array.item() if array.ndim == 0 else array for name, array in values.items()}
    values |= header | {room: parts[room] for room in ROOMS}
    return values, None if inner is None else (inner, parts["trajectories"])


def check_fields(state: State) -> None:
    """Raise if a state that was read cannot be one."""
    if not (
        isinstance(state.batched, bool)
        and isinstance(state.rule, str)
        and isinstance(state.problem, dict)
    ):
        raise ValueError("its header is not that of a state")
    batch = state.x.shape[-1:] if state.batched else ()
    shapes: dict[str, tuple[int, ...]] = (
        dict.fromkeys(LIKE_X, state.x.shape) | dict.fromkeys(NUMBERS, batch) | {"gain": ()}
    )
    if state.batched and state.x_sum is None and state.x_best is None:  # of a sweep
        del shapes["x_sum"], shapes["x_best"]
    for name, shape in shapes.items():
        value = np.asarray(getattr(state, name))
        dtype = (
            state.x.dtype
            if name in ("x", "g", "x_best")
            else value.dtype
            if name in DTYPES
            else np.dtype(np.float64)
        )
        if (
            value.shape != shape
            or value.dtype.kind not in DTYPES.get(name, "f")
            or value.dtype != dtype
            or not dtype.isnative
        ):
            raise ValueError(
                f"{name} is of shape {value.shape} and dtype {value.dtype}, which does not fit the rest"
            )
        if name not in SIGNED and (value < 0).any():
            raise ValueError(f"{name} is negative")
    for name, array in state.memory.items():
        fits = array.ndim <= 1 + len(batch) and array.shape[array.ndim - len(batch) :] == batch
        if not fits or array.dtype != np.float64 or not array.dtype.isnative:
            raise ValueError(
                f"{name} is of shape {array.shape} and dtype {array.dtype}, which does not fit the rest"
            )
        if name == "total" and (array < 0).any():
            raise ValueError("total is negative")
    if state.x.dtype not in (np.float32, np.float64):
        raise ValueError(f"x is of dtype {state.x.dtype}")
    for name in ("x", "x_best", "x_sum"):
        if name in shapes and not np.isfinite(getattr(state, name)).all():
            raise ValueError(f"{name} is not finite")
