"""The state of a run as callers see it: what it takes to continue the run, bit for bit."""

from __future__ import annotations

import os
from abc import ABC
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from .._files import as_path
from .._messages import counted
from . import checkpoint

STATE_FORMAT = "adagrad-diff state 4"
STATE_HEADER = (
    "rule",
    "batched",
    "problem",
)  # fields that are stored as JSON; the others are arrays
STATE_NUMBERS = (
    "n",
    "f",
    "phi",
    "fun_best",
    "f_first",
    "g_first",
    "norm",
    "failed",
)  # one per trajectory
STATE_ARRAYS = ("x", "g", "x_sum", "x_best", "average")
STATE_DICTS = ("memory", "notes")
DTYPE_KINDS = {"n": "iu", "failed": "b"}  # kinds of dtype; all other arrays are floating-point
SIGNED_FIELDS = ("x", "f", "phi", "g", "x_sum", "x_best", "average", "fun_best", "f_first")


@dataclass(frozen=True, repr=False)
class State(ABC):
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
    x_sum: Any = None  # x^2 + ... + x^{n+1}
    average: Any = None  # or the average that the rule keeps itself
    problem: dict[str, Any] = field(default_factory=dict)  # describes the problem and the rule
    notes: dict[str, np.ndarray] = field(default_factory=dict)  # what the certificate remembers
    iterate: Any = None  # how x was reached, for subgradients and steps; not stored in files

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
        if self.iterate is None:
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
        copies: dict[str, Any] = {
            k: v.copy() for k, v in values.items() if isinstance(v, np.ndarray)
        }
        copies |= {
            k: {name: array.copy() for name, array in values[k].items()} for k in STATE_DICTS
        }
        return replace(self, **copies)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file of arrays and JSON (no pickle), replacing an older one in one step."""
        header, arrays = self.pack()
        checkpoint.save(path, {"format": STATE_FORMAT, **header}, arrays)

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what a file holds: values for JSON, and arrays by name."""
        header = {name: getattr(self, name) for name in STATE_HEADER}
        values = {name: getattr(self, name) for name in (*STATE_NUMBERS, *STATE_ARRAYS)}
        arrays = {name: np.asarray(value) for name, value in values.items() if value is not None}
        for name in STATE_DICTS:
            arrays |= {f"{name}.{key}": np.asarray(v) for key, v in getattr(self, name).items()}
        return header, arrays


def unpack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> State:
    """Return the state that `State.pack` has taken apart; a ValueError says what does not fit."""
    parts: dict[str, dict[str, np.ndarray]] = {"": {}, **{name: {} for name in STATE_DICTS}}
    for name, array in arrays.items():
        kind, _, rest = name.partition(".")
        parts[kind if rest else ""][rest or name] = array
    if unknown := [
        *({*parts[""]} - {*STATE_NUMBERS, *STATE_ARRAYS}),
        *({*header} - {*STATE_HEADER}),
    ]:
        raise ValueError(f"it has {unknown[0]!r}, which is not part of a state")
    values: dict[str, Any] = {k: a.item() if a.ndim == 0 else a for k, a in parts[""].items()}
    state = State(**values, **header, memory=parts["memory"], notes=parts["notes"])
    _check(state)
    return state


def _check(state: State) -> None:
    """Raise if a state from a file is not consistent: compiled code trusts shapes and dtypes."""
    if not (
        isinstance(state.batched, bool)
        and isinstance(state.rule, str)
        and isinstance(state.problem, dict)
    ):
        raise ValueError("its header is not that of a state")
    batch = state.x.shape[-1:] if state.batched else ()
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(STATE_ARRAYS, state.x.shape) | dict.fromkeys(
        STATE_NUMBERS, batch
    )
    del shapes["x_sum" if state.x_sum is None else "average"]
    for name, shape in shapes.items():
        value = np.asarray(getattr(state, name))
        dtype = np.dtype(np.float64)
        if name in ("x", "g", "x_best") or name in DTYPE_KINDS:
            dtype = value.dtype if name in DTYPE_KINDS else state.x.dtype
        kinds = DTYPE_KINDS.get(name, "f")
        if (
            value.shape != shape
            or value.dtype.kind not in kinds
            or value.dtype != dtype
            or not dtype.isnative
        ):
            raise ValueError(
                f"{name} is of shape {value.shape} and dtype {value.dtype}, which does not fit the rest"
            )
        if name not in SIGNED_FIELDS and (value < 0).any():
            raise ValueError(f"{name} is negative")
    for name, array in state.memory.items():
        fits = array.shape[array.ndim - len(batch) :] == batch
        if not fits or array.dtype != np.float64 or not array.dtype.isnative:
            raise ValueError(
                f"{name} is of shape {array.shape} and dtype {array.dtype}, which does not fit the rest"
            )
        if name == "total" and (array < 0).any():
            raise ValueError("total is negative")
    if state.x.dtype not in (np.float32, np.float64):
        raise ValueError(f"x is of dtype {state.x.dtype}")
    for name in ("x", "x_best", "x_sum", "average"):
        if name in shapes and not np.isfinite(getattr(state, name)).all():
            raise ValueError(f"{name} is not finite")


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
        header, arrays = checkpoint.load(source, STATE_FORMAT)
        return unpack(header, arrays)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(
            f"{source} is not a readable state file of adagrad_diff: {error}"
        ) from error
