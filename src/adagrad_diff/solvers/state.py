"""The state of a run as callers see it: what it takes to continue the run, bit for bit."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._files import as_path
from .._messages import counted
from . import checkpoint

STATE_FORMAT = "adagrad-diff state 4"
STATE_HEADER = ("rule", "batched", "problem")  # fields that are stored as JSON
STATE_NUMBERS = ("n", "f", "phi", "fun_best", "f_first", "g_first", "norm", "failed")
STATE_ARRAYS = ("x", "g", "x_sum", "x_best", "average")  # of the shape of x
STATE_DICTS = ("memory", "notes")  # arrays by name
NONNEGATIVE = ("n", "g_first", "norm", "total")
FINITE = ("x", "x_best", "x_sum", "average")
DTYPE_KINDS = {"n": "iu", "failed": "b"}  # kinds of dtype; all other arrays are floating-point


@dataclass(frozen=True, repr=False, eq=False, init=False)
class State:
    """A run after n iterations: x is x^{n+1}, g the (sub)gradient there.

    Arrays have the shape of x0. If that ends in an axis of trajectories, so do all arrays, and
    numbers are arrays with one entry per trajectory.
    """

    n: Any  # iterations done
    x: np.ndarray
    f: Any  # loss at x
    phi: Any  # penalty at x
    g: np.ndarray
    memory: dict[str, np.ndarray]  # what the rule remembers, by name
    x_best: Any  # the iterate with the smallest objective, and that objective
    fun_best: Any
    f_first: Any  # f(x^1), against which divergence is judged
    g_first: Any  # ||g^1||, against which subgradients are judged
    norm: Any  # ||u||, u a subgradient of F at x; NaN if it is not known
    failed: Any  # whether a value at the next iterate was not finite
    rule: str
    batched: bool  # whether there is an axis of trajectories
    problem: dict[str, Any]  # describes the problem and the rule
    notes: dict[str, np.ndarray]  # what the certificate remembers
    x_sum: Any = None  # x^2 + ... + x^{n+1}
    average: Any = None  # or the average that the rule keeps itself
    iterate: Any = None  # how x was reached, for subgradients and steps; not stored in files

    def __init__(self, **values: Any):
        vars(self).update(values)  # several times as fast as one assignment for each field

    def __repr__(self) -> str:
        several = f", {self.x.shape[-1]} trajectories" if self.batched else ""
        size = counted(self.x.size // (self.x.shape[-1] if self.batched else 1), "coordinate")
        done = counted(int(np.max(self.n)), "iteration")
        return f"State(after {done} of {self.rule}, {size}{several})"

    @property
    def fun(self) -> Any:
        """The objective F(x) = f(x) + phi(x)."""
        with np.errstate(invalid="ignore"):  # infinities of both signs
            return self.f + self.phi

    @property
    def x_avg(self) -> np.ndarray:
        """The paper's average of x^2, ..., x^{n+1} (x itself if n = 0), or the one that the rule keeps."""
        if self.average is not None:
            return np.asarray(self.average.astype(self.x.dtype))
        average = self.x_sum / np.maximum(self.n, 1)
        return np.where(np.equal(self.n, 0), self.x, average).astype(self.x.dtype, copy=False)

    @property
    def subgradient_norm(self) -> Any:
        """||u|| of a subgradient u of F at x; NaN if it is not known."""
        if self.iterate is None or not np.any(np.isnan(self.norm)):
            return self.norm
        with np.errstate(all="ignore"):
            return np.where(self.failed, self.norm, self.iterate.subgradient_norm())[()]

    @property
    def step(self) -> np.ndarray | None:
        """The steps eta / w^n that led to x, of the shape of x; None if they are not known."""
        if self.iterate is None or self.iterate.step is None:
            return None
        x = self.iterate.x
        return np.broadcast_to(self.iterate.step, x.shape).astype(x.dtype).reshape(self.x.shape)

    @property
    def mean_step(self) -> Any:
        """The mean over coordinates of eta / w^n; NaN before the first iteration."""
        if (step := self.step) is None:
            return np.full(np.shape(self.f), np.nan)[()]
        return self.flat(step.astype(np.float64)).mean(axis=0)[()]

    def flat(self, array: np.ndarray) -> np.ndarray:
        """Return the same memory with one axis of coordinates: (d,), or (d, trajectories)."""
        return array.reshape(-1, array.shape[-1]) if self.batched else array.reshape(-1)

    def copy(self) -> State:
        """Return an independent copy."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value.copy()
        for name in STATE_DICTS:
            values[name] = {key: array.copy() for key, array in values[name].items()}
        return State(**values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file of arrays and JSON (no pickle), replacing an older one in one step."""
        header, arrays = self.pack()
        checkpoint.save(path, {"format": STATE_FORMAT, **header}, arrays)

    def pack(self) -> checkpoint.Content:
        """Return what a file holds: values for JSON, and arrays by name."""
        header = {name: getattr(self, name) for name in STATE_HEADER}
        values = {name: getattr(self, name) for name in (*STATE_NUMBERS, *STATE_ARRAYS)}
        arrays = {name: np.asarray(value) for name, value in values.items() if value is not None}
        for name in STATE_DICTS:
            arrays |= {f"{name}.{key}": np.asarray(v) for key, v in getattr(self, name).items()}
        return header, arrays


def unpack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> State:
    """Return the state that `State.pack` has taken apart; a ValueError says what does not fit."""
    values: dict[str, Any] = {name: {} for name in STATE_DICTS}
    for name, array in arrays.items():
        group, _, key = name.partition(".")
        if key and group in STATE_DICTS:
            values[group][key] = array
        elif name in (*STATE_NUMBERS, *STATE_ARRAYS):
            values[name] = array.item() if array.ndim == 0 else array
        else:
            raise ValueError(f"it has {name!r}, which is not part of a state")
    if header.keys() != set(STATE_HEADER):
        raise ValueError(f"its header has {sorted(header)}")
    state = State(**values, **header)
    _check(state)
    return state


def _check(state: State) -> None:
    """Raise if a state from a file is not consistent: compiled code trusts shapes and dtypes."""
    types = {"batched": bool, "rule": str, "problem": dict}
    if not all(isinstance(getattr(state, name), kind) for name, kind in types.items()):
        raise ValueError("its header is not that of a state")
    if state.x.dtype not in (np.float32, np.float64):
        raise ValueError(f"x is of dtype {state.x.dtype}")
    batch = state.x.shape[-1:] if state.batched else ()
    for name in (*STATE_NUMBERS, *STATE_ARRAYS):
        value = getattr(state, name)
        if value is None and name in ("x_sum", "average"):
            continue
        dtype = state.x.dtype if name in ("x", "g", "x_best") else np.dtype(np.float64)
        shape = batch if name in STATE_NUMBERS else state.x.shape
        _check_array(name, np.asarray(value), shape, DTYPE_KINDS.get(name, dtype))
        if name in FINITE and not np.isfinite(value).all():
            raise ValueError(f"{name} is not finite")
    for name, array in state.memory.items():  # of any shape per trajectory
        shape = (*array.shape[: array.ndim - len(batch)], *batch)
        _check_array(name, array, shape, np.dtype(np.float64))


def _check_array(name: str, array: np.ndarray, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise if an array is not of this shape, or not of this dtype or kind of dtype."""
    right = array.dtype.kind in dtype if isinstance(dtype, str) else array.dtype == dtype
    if not right or array.shape != shape:
        raise ValueError(
            f"{name} is of shape {array.shape} and dtype {array.dtype}, which does not fit the rest"
        )
    if name in NONNEGATIVE and (array < 0).any():
        raise ValueError(f"{name} is negative")


def load_state(path: str | os.PathLike[str]) -> State:
    """Read a state that `State.save` wrote.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from adagrad_diff import load_state, minimize
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.npz"
    >>> minimize(lambda x: (0.5 * x @ x, x), [1.0], eta=0.1, max_iter=5).state.save(path)
    >>> int(load_state(path).n)
    5
    """
    source = as_path(path, "path")
    try:
        return unpack(*checkpoint.load(source, STATE_FORMAT))
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(
            f"{source} is not a readable state file of adagrad_diff: {error}"
        ) from error
