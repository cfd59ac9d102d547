"""Where a run stands: everything Algorithm 1 needs to go on, exactly, and nothing else."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from .. import kernels
from .._files import as_path, read_arrays, write
from .._messages import counted
from ..solvers.state import STATE_FORMAT
from ..solvers.state import State as PublicState
from ..solvers.state import load_state as load_run_state
from .archive import FORMAT, check_fields, pack, unpack

ONE = np.ones(1)


@dataclass(repr=False)
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
    memory: dict[str, np.ndarray]  # what the rule remembers, by name, up to and with g
    x_sum: Any  # x^2 + ... + x^{n+1}, in double precision; None if nobody wants the average
    x_best: Any  # the iterate with the smallest objective; None likewise
    fun_best: Any  # its objective
    f_first: Any  # f(x^1), against which divergence is judged
    g_first: Any  # ||g^1||, against which the subgradient is judged
    norm: Any  # ||u||, u the subgradient of F at x that `diagnose` speaks of; NaN until it is asked for
    failed: Any  # a value at the next iterate was not finite: x stays the last good one
    rule: str  # name of the rule it belongs to
    batched: bool  # whether there is a trailing axis of trajectories
    gain: Any = (
        math.inf
    )  # what the best objective has lately gained, once that says something about the run's end
    problem: dict[str, Any] = field(
        default_factory=dict
    )  # the one it belongs to, if anybody is to ask
    notes: dict[str, np.ndarray] = field(
        default_factory=dict
    )  # what those who watch or lead the run remember, by name
    trajectories: State | None = None  # those that race, if this is the state of their leader
    # Not needed to go on: the iterate and the gradient before x and g, and the steps eta / w that led from there to x.
    x_prev: Any = None
    g_prev: Any = None
    step: Any = None
    pull: Any = None  # of a rule that does not move along g: what takes its place, (x - point) / step; see `View`
    oracle: Any = None  # the loss's oracle
    scale: Any = None  # factors of the coordinates in which subgradients are measured, if they are not x's own
    committing: bool = False  # an iteration is being completed, and must be
    turning: bool = (
        False  # trajectories have come to the end of a stage: the next iteration begins another one
    )

    def __repr__(self) -> str:
        several = f", {self.x.shape[-1]} trajectories" if self.batched else ""
        size = counted(self.x.size // (self.x.shape[-1] if self.batched else 1), "coordinate")
        return f"State(after {counted(int(np.max(self.n)), 'iteration')} of {self.rule}, {size}{several})"

    @property
    def fun(self) -> Any:
        """The objective F(x) = f(x) + phi(x)."""
        return self.f + self.phi

    @property
    def x_avg(self) -> np.ndarray:
        """The paper's average, of x^2 to x^{n+1}, x itself before the first iteration; or the one that the rule remembers."""
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
        if self.trajectories is not None:  # of the one that is ahead
            column = self.trajectories.ahead()
            norm, step = (float(values[column]) for values in self.trajectories.diagnose())
            self.norm = norm
            return norm, step
        if self.step is None:
            nan = np.full(self.f.shape, np.nan) if self.batched else math.nan
            return nan, nan
        out = np.empty((2, self.f.size if self.batched else 1))
        arrays = (self.x_prev, self.x, self.g_prev, self.g)
        x_prev, x, g_prev, g = arrays if self.x.ndim == 1 else map(self.flat, arrays)
        kernels.diagnose(
            x_prev, x, self.step, g_prev, g, ONE if self.scale is None else self.scale, out
        )
        if not self.batched:
            self.norm = math.sqrt(out[0, 0])
            return self.norm, float(out[1, 0])
        self.norm = np.where(
            self.failed, self.norm, np.sqrt(out[0])
        )  # a failed trajectory has not moved
        return self.norm.copy(), out[1]  # `advance` writes to it

    def subgradient_rounding(self) -> Any:
        """How far the norm of the subgradient may be off: it is made of the difference of two iterates, divided by the step."""
        eps = float(np.finfo(self.x.dtype).eps)
        if self.trajectories is not None:
            return self.trajectories.subgradient_rounding()[self.trajectories.ahead()]
        if self.step is None:
            return np.full(np.shape(self.f), np.inf)[()]
        sizes = self.flat(self.x).astype(np.float64) / self.step
        if self.scale is not None:
            sizes *= self.scale if sizes.ndim == 1 else self.scale[:, None]
        return eps * (self.g_first + np.linalg.norm(sizes, axis=0))

    def change(self) -> Any:
        """The root of the rule's total, if it has one: how much gradients have changed, or how large they were."""
        if self.trajectories is None:
            return np.sqrt(self.memory["total"].sum(axis=0)) if "total" in self.memory else 0.0
        run = self.trajectories
        total = run.memory["total"][:, run.ahead()]
        return np.sqrt(
            np.sum(
                total if run.scale is None or run.scale.size != total.size else total * run.scale**2
            )
        )

    def ahead(self) -> int:
        """The trajectory with the smallest objective of those that have not failed."""
        return int(np.argmin(np.where(self.failed, np.inf, self.fun)))

    @property
    def subgradient_norm(self) -> Any:
        """||u||; see `diagnose`."""
        return self.diagnose()[0]

    @property
    def mean_step(self) -> Any:
        """The mean over coordinates of eta / w^n."""
        return self.diagnose()[1]

    def oracle_at_x(self) -> Any:
        """The loss's oracle, which was last called at x."""
        return self.oracle

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

    def _map(self, change: Callable[[np.ndarray], np.ndarray]) -> State:
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        values = {k: change(v) if isinstance(v, np.ndarray) else v for k, v in values.items()}
        return replace(
            self,
            **values | {"memory": {name: change(array) for name, array in self.memory.items()}},
        )

    def copy(self) -> State:
        """An independent copy."""
        copy = self._map(np.copy)
        copy.notes = {name: array.copy() for name, array in self.notes.items()}
        copy.trajectories = None if self.trajectories is None else self.trajectories.copy()
        return copy

    def select(self, columns: np.ndarray) -> State:
        """The state of some of the trajectories."""
        return self._map(lambda array: np.ascontiguousarray(array[..., columns]))

    def put(self, columns: np.ndarray, part: State) -> None:
        """Write the state of some of the trajectories back."""
        for name in (f.name for f in fields(self)):
            array = getattr(self, name)
            if isinstance(array, np.ndarray):
                array[..., columns] = getattr(part, name)
        for name, array in self.memory.items():
            array[..., columns] = part.memory[name]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file of arrays and JSON (no pickle), replacing an older one in a single step."""
        target = as_path(path, "path")
        header, arrays = pack(self)
        text = np.array(json.dumps({"format": FORMAT, **header}))
        write(target, lambda file: np.savez(file, header=text, **arrays))


PublicState.register(State)


def whole_state(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> State:
    """The state that `pack` has taken apart, checked."""
    values, inner = unpack(header, arrays)
    state = State(**values)
    check_fields(state)
    if inner is not None:
        state.trajectories = whole_state(*inner)
    return state


def load_state(path: str | os.PathLike[str]) -> Any:
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
        content: dict[str, Any] = dict(read_arrays(source))
        header = json.loads(str(content.pop("header")))
        if header.get("format") == STATE_FORMAT:
            return load_run_state(source)
        if (found := header.pop("format")) != FORMAT:
            raise ValueError(f"its format is {found!r}, not {FORMAT!r}")
        return whole_state(header, content)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(
            f"{source} is not a readable state file of adagrad_diff: {error}"
        ) from error
