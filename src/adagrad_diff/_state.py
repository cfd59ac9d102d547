"""Where a run stands: everything Algorithm 1 needs to go on, exactly, and nothing else."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from . import kernels
from ._files import read_arrays, write

FORMAT = "adagrad-diff state 1"
HEADER = ("rule", "batched")  # kept as JSON; everything else is an array
SCRATCH = ("x_prev", "g_prev", "step", "oracle")


@dataclass
class State:
    """The state after n iterations: x is x^{n+1}, g is g^{n+1}.

    Arrays have the shape of x, which ends in an axis of trajectories if there are several; numbers are then arrays (B,).
    A state drawn from `iterate` is valid until the next one is drawn: `copy()` keeps it. `save` writes it to a file.
    """

    n: Any  # iterations done
    x: np.ndarray  # the iterate
    f: Any  # loss at x
    phi: Any  # penalty at x
    g: np.ndarray  # (sub)gradient of f at x
    total: np.ndarray  # the rule's sums, one per block, up to and with g
    x_sum: Any  # x^2 + ... + x^{n+1}, in double precision; None if nobody wants the average
    x_best: Any  # the iterate with the smallest objective; None likewise
    fun_best: Any  # its objective
    f_first: Any  # f(x^1), against which divergence is judged
    g_first: Any  # ||g^1||, against which the subgradient is judged
    norm: Any  # ||u||, u the subgradient of F at x that `diagnose` speaks of; NaN until it is asked for
    failed: Any  # a value at the next iterate was not finite: x stays the last good one
    rule: str  # name of the rule the sums belong to
    batched: bool  # whether there is a trailing axis of trajectories
    # Not needed to go on: the iterate and the gradient before x and g, and the steps eta / w that led from there to x.
    x_prev: Any = None
    g_prev: Any = None
    step: Any = None
    oracle: Any = None  # the loss's oracle, last called at x

    @property
    def fun(self) -> Any:
        """The objective F(x) = f(x) + phi(x)."""
        return self.f + self.phi

    @property
    def x_avg(self) -> np.ndarray:
        """The paper's average, of x^2 to x^{n+1}; x itself before the first iteration."""
        average = self.x_sum / np.maximum(self.n, 1)
        return np.where(np.equal(self.n, 0), self.x, average).astype(self.x.dtype, copy=False)

    def flat(self, array: np.ndarray) -> np.ndarray:
        """The same memory with one axis of coordinates: (d,), or (d, trajectories)."""
        if array.ndim == 1 + self.batched:
            return array
        return array.reshape(-1, array.shape[-1]) if self.batched else array.reshape(-1)

    def diagnose(self) -> tuple[Any, Any]:
        """||u|| and the mean over coordinates of eta / w^n; both NaN before the first iteration.

        u = W_n (x^n - x^{n+1}) / eta + g^{n+1} - g^n is a subgradient of F at x^{n+1}.
        """
        if self.step is None:
            nan = np.full(self.f.shape, np.nan) if self.batched else math.nan
            return nan, nan
        out = np.empty((2, self.f.size if self.batched else 1))
        arrays = (self.x_prev, self.x, self.g_prev, self.g)
        x_prev, x, g_prev, g = arrays if self.x.ndim == 1 else map(self.flat, arrays)
        kernels.diagnose(x_prev, x, self.step, g_prev, g, out)
        if not self.batched:
            self.norm = math.sqrt(out[0, 0])
            return self.norm, float(out[1, 0])
        self.norm = np.where(self.failed, self.norm, np.sqrt(out[0]))  # a failed trajectory has not moved
        return self.norm.copy(), out[1]  # `advance` writes to it

    @property
    def subgradient_norm(self) -> Any:
        """||u||; see `diagnose`."""
        return self.diagnose()[0]

    @property
    def mean_step(self) -> Any:
        """The mean over coordinates of eta / w^n."""
        return self.diagnose()[1]

    def advance(self, f: Any, phi: Any) -> None:
        """Complete an iteration: x_prev and g_prev hold the new iterate and its gradient, f and phi its values.

        Nothing is changed before this point, so an iteration that is interrupted leaves the state as it was.
        """
        flat = self.flat
        if self.batched:  # trajectories that fail stay where they are
            averages = (None, None) if self.x_sum is None else (flat(self.x_sum), flat(self.x_best))
            new, old = (flat(self.x_prev), flat(self.g_prev)), (flat(self.x), flat(self.g))
            counts = (self.n, self.failed, self.norm, self.fun_best)
            kernels.advance(f, phi, *new, self.f, self.phi, *old, *counts, *averages)
        elif not math.isfinite(f + phi + kernels.overflow(flat(self.g_prev))):
            self.failed = True
            return
        self.x, self.x_prev = self.x_prev, self.x
        self.g, self.g_prev = self.g_prev, self.g
        self.f, self.phi = f, phi
        if not self.batched:
            self.n += 1
            self.norm = math.nan
            np.add(self.x_sum, self.x, out=self.x_sum)
            if f + phi < self.fun_best:
                np.copyto(self.x_best, self.x)
                self.fun_best = f + phi

    def _map(self, change) -> State:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: change(v) if isinstance(v, np.ndarray) else v for k, v in values.items()})

    def copy(self) -> State:
        """An independent copy."""
        return self._map(np.copy)

    def select(self, columns: np.ndarray) -> State:
        """The state of some of the trajectories."""
        return self._map(lambda array: np.ascontiguousarray(array[..., columns]))

    def put(self, columns: np.ndarray, part: State) -> None:
        """Write the state of some of the trajectories back."""
        for field in fields(self):
            array = getattr(self, field.name)
            if isinstance(array, np.ndarray):
                array[..., columns] = getattr(part, field.name)

    def save(self, path: str | os.PathLike) -> None:
        """Write the state to a file of arrays and JSON (no pickle), replacing an older one in a single step."""
        path = Path(path)
        names = (f.name for f in fields(self) if f.name not in HEADER + SCRATCH and getattr(self, f.name) is not None)
        arrays: dict[str, Any] = {name: np.asarray(getattr(self, name)) for name in names}
        header = json.dumps({"format": FORMAT, **{name: getattr(self, name) for name in HEADER}})
        write(path, lambda file: np.savez(file, header=np.array(header), **arrays))


def _check_shapes(state: State) -> None:
    """The kernels trust shapes, so a file that was tampered with must not reach them."""
    batch = state.x.shape[-1:] if state.batched else ()
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("x", "g", "x_sum", "x_best"), state.x.shape)
    if state.batched and state.x_sum is None and state.x_best is None:  # of a sweep
        del shapes["x_sum"], shapes["x_best"]
    shapes["total"] = (len(state.total), *batch)
    shapes |= dict.fromkeys(("n", "f", "phi", "fun_best", "f_first", "g_first", "norm", "failed"), batch)
    for name, shape in shapes.items():
        value = np.asarray(getattr(state, name))
        if value.shape != shape or value.dtype.kind not in "fib":
            raise ValueError(f"{name} is of shape {value.shape} and dtype {value.dtype}, which does not fit the rest")


def load_state(path: str | os.PathLike) -> State:
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
    try:
        content: dict[str, Any] = dict(read_arrays(path))
        header = json.loads(str(content.pop("header")))
        if (found := header.pop("format")) != FORMAT:
            raise ValueError(f"its format is {found!r}, not {FORMAT!r}")
        content = {"x_sum": np.array(None), "x_best": np.array(None), **content}
        state = State(**{k: v.item() if v.ndim == 0 else v for k, v in content.items()}, **header)
        _check_shapes(state)
        return state
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{os.fspath(path)} is not a readable state file of adagrad_diff: {error}") from error
