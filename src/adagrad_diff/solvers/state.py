"""The state of a run: everything that an iteration changes, and all it takes to continue."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from .._files import Content, as_path, load_arrays, save_arrays
from .._messages import counted
from .fingerprint import describe_problem
from .problem import Layout, Problem, double
from .proximal_gradient import Iterate, Solver

STATE_FORMAT = "adagrad-diff state 6"
BLAS_THREADS = 10_000  # entries from which on BLAS uses threads, which disturb those of products
LARGEST_ROOT = float(np.sqrt(np.finfo(np.float64).max))
MAX_ULPS = 1e4  # units in the last place by which values may differ, as sums are ordered otherwise
MAX_GRADIENT_CHANGE = 1e-3  # relative difference of gradients, which jump at nonsmooth points
MEMORY, CENTER = "memory.", "center"  # names in a file: a prefix, and the center of the layout


@dataclass(eq=False)
class Origin:
    """What a run was begun with, and what all its states have in common."""

    rule: str  # the name of the rule or solver
    layout: Layout  # of x
    average_power: float  # see `Rule.average_power`
    parts: Any = None  # loss, penalty and rule; None if the state comes from a file
    description: Any = None  # of these parts, once it was needed

    @property
    def problem(self) -> dict[str, Any]:
        """The description of the problem and the rule, which identifies them in files."""
        if self.description is None:
            self.description = describe_problem(*self.parts)
        known: dict[str, Any] = self.description
        return known

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"description": self.problem, "parts": None}


class State(NamedTuple):
    """A run after n iterations: x is x^{n+1}, g the (sub)gradient there.

    Arrays have the shape of x0. If that ends in an axis of trajectories, so do all arrays, and
    numbers are arrays with one entry per trajectory. States are never modified.
    """

    iterate: Iterate  # with one axis of coordinates, as solvers see it
    x_sum: Any  # weighted sum of x^2, ..., x^{n+1}; None if it is not kept
    best: Any  # the iterate with the smallest objective; None if it is not kept
    fun_best: Any  # its objective
    failed: Any  # whether the next iterate was not finite: then x stays the last good one
    f_first: Any  # f(x^1), relative to which divergence is measured
    g_first: Any  # ||g^1||, relative to which subgradients are measured
    origin: Origin

    @classmethod
    def first(cls, solver: Solver, problem: Problem, x: np.ndarray, averages: bool = True) -> State:
        """Return the state before the first iteration; `averages` keeps x_avg and x_best."""
        rule = solver.rule
        parts = problem.original.loss, problem.penalty, rule
        origin = Origin(solver.name, problem.layout, rule.average_power, parts)
        with np.errstate(all="ignore"):
            s = solver.init(problem, x)
            norm = problem.norm(double(s.g))
            failed = ~np.isfinite(s.f + norm)
            x_sum = np.zeros(x.shape) if averages else None
            return cls(s, x_sum, x if averages else None, s.fun, failed, s.f, norm, origin)

    def advanced(self, new: Iterate) -> State:
        """Return the state after one more iteration. Trajectories that fail stay where they are."""
        if isinstance(new.f, np.ndarray):
            return self._several_advanced(new)
        fun, best, fun_best = new.f + new.phi, self.best, self.fun_best
        if not (isfinite(fun) and _has_finite_squares(new.g)):
            return self._replace(failed=True)
        if fun < fun_best:
            best, fun_best = None if best is None else new.x, fun
        x_sum = None if self.x_sum is None else self._decayed_sum(new.n) + new.x
        return State(new, x_sum, best, fun_best, False, *self[5:])

    def _several_advanced(self, new: Iterate) -> State:
        fun = new.f + new.phi
        failed, best, fun_best = self.failed, self.best, self.fun_best
        finite = np.isfinite(fun)
        if not finite.all() or not _has_finite_squares(new.g):
            failed = failed | ~finite | ~(np.abs(double(new.g)) < LARGEST_ROOT).all(axis=0)
        added = new.x
        if failed.any():
            old = self.iterate
            if old.step is None:  # before the first iteration
                old = old._replace(point=old.x, step=np.full_like(new.step, np.nan))
            new = map_arrays(lambda a, b: np.where(failed, b, a), new, old)
            added, fun = np.where(failed, 0.0, new.x), np.where(failed, np.inf, fun)
        x_sum = None if self.x_sum is None else self._decayed_sum(new.n) + added
        better = fun < fun_best
        if better.any():
            fun_best = np.where(better, fun, fun_best)
            best = None if best is None else np.where(better, new.x, best)
        return State(new, x_sum, best, fun_best, failed, *self[5:])

    def _decayed_sum(self, n: Any) -> Any:
        """Return the sum so far, with the weights that it has in an average with x^{n+1}."""
        power = self.origin.average_power
        return self.x_sum * ((n - 1) / (n - 1 + power)) if power else self.x_sum

    def select(self, columns: np.ndarray) -> State:
        """Return the state of some of the trajectories."""
        chosen: State = map_arrays(lambda a: np.ascontiguousarray(a[..., columns]), self)
        return chosen

    # ------------------------------------------------------------------ for users

    @property
    def batched(self) -> bool:
        """Whether there is an axis of trajectories."""
        return np.ndim(self.f) == 1

    @property
    def rule(self) -> str:
        """The name of the rule."""
        return self.origin.rule

    @property
    def n(self) -> Any:
        """The number of iterations."""
        return self.iterate.n

    @property
    def f(self) -> Any:
        """The loss at x."""
        return self.iterate.f

    @property
    def phi(self) -> Any:
        """The penalty at x."""
        return self.iterate.phi

    @property
    def memory(self) -> dict[str, Any]:
        """What the rule remembers, by name."""
        return self.iterate.memory

    @property
    def x(self) -> np.ndarray:
        """The iterate x^{n+1}."""
        return self.origin.layout.back(self.iterate.x)

    @property
    def g(self) -> np.ndarray:
        """The (sub)gradient of the loss at x."""
        return self.origin.layout.gradient(self.iterate.g)

    @property
    def x_best(self) -> Any:
        """The iterate with the smallest objective."""
        return None if self.best is None else self.origin.layout.back(self.best)

    @property
    def fun(self) -> Any:
        """The objective F(x) = f(x) + phi(x)."""
        with np.errstate(invalid="ignore"):  # infinities of both signs
            return self.f + self.phi

    @property
    def x_avg(self) -> np.ndarray:
        """The paper's average of x^2, ..., x^{n+1} (x itself if n = 0), or that of the rule."""
        if self.x_sum is None:
            return self.x
        weights = (self.n + self.origin.average_power) / (1.0 + self.origin.average_power)
        average = np.where(np.equal(self.n, 0), self.iterate.x, self.x_sum / np.maximum(weights, 1))
        return self.origin.layout.back(average.astype(self.iterate.x.dtype, copy=False))

    @property
    def subgradient_norm(self) -> Any:
        """||u|| of a subgradient u of F at x; NaN if x has not moved."""
        with np.errstate(all="ignore"):
            return self.iterate.subgradient_norm()

    @property
    def step(self) -> np.ndarray | None:
        """The steps eta / w^n that led to x, of the shape of x; None before the first iteration."""
        x, step = self.iterate.x, self.iterate.step
        if step is None:
            return None
        return self.origin.layout.shaped(np.broadcast_to(step, x.shape).astype(x.dtype))

    @property
    def mean_step(self) -> Any:
        """The mean over coordinates of eta / w^n; NaN before the first iteration."""
        return self.iterate.mean_step()

    def copy(self) -> State:
        """Return an independent copy."""
        copied: State = map_arrays(np.copy, self)
        return copied

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file of arrays and JSON (no pickle), replacing an older one."""
        header, arrays = self.pack()
        save_arrays(as_path(path, "path"), {"format": STATE_FORMAT, **header}, arrays)

    def __repr__(self) -> str:
        several = f", {self.x.shape[-1]} trajectories" if self.batched else ""
        size = counted(int(np.prod(self.origin.layout.shape)), "coordinate")
        done = counted(int(np.max(self.n)), "iteration")
        return f"State(after {done} of {self.rule}, {size}{several})"

    # ------------------------------------------------------------------ files

    def pack(self) -> Content:
        """Return what a file holds: values for JSON, and arrays by name."""
        origin = self.origin
        header = {"rule": origin.rule, "power": origin.average_power}
        header |= {"shape": list(origin.layout.shape), "problem": origin.problem}
        center = {} if origin.layout.center is None else {CENTER: origin.layout.center}
        return header, self.arrays() | center

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> State:
        """Return the state that `pack` has taken apart.

        Whether arrays fit a problem is checked when the run continues.
        """
        layout = Layout(tuple(header["shape"]), arrays.pop(CENTER, None))
        origin = Origin(header["rule"], layout, header["power"], description=header["problem"])
        state = cls.from_arrays(arrays, origin)
        fits = state.iterate.x.shape[:1] == (np.prod(layout.shape),)
        if not (fits and np.isfinite(state.iterate.x).all()):
            raise ValueError("its x is not finite, or of another shape")
        return state

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays and numbers by name; those of the memory are "memory.NAME"."""
        values = {**self._asdict(), **self.iterate._asdict(), "iterate": None, "origin": None}
        for name, value in values.pop("memory").items():
            if isinstance(value, State):
                inner = value.arrays().items()
                values |= {f"{MEMORY}{name}.{key}": array for key, array in inner}
            else:
                values[MEMORY + name] = value
        return {name: np.asarray(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], origin: Origin) -> State:
        """Return the state with these arrays."""
        values: dict[str, Any] = {"x_sum": None, "best": None}
        memory, states = dict[str, Any](), dict[str, dict[str, np.ndarray]]()
        for full, array in arrays.items():
            name, _, inner = full.removeprefix(MEMORY).partition(".")
            if inner:
                states.setdefault(name, {})[inner] = array
            elif full.startswith(MEMORY):
                memory[name] = array
            else:
                values[name] = array.item() if array.ndim == 0 else array
        memory |= {name: cls.from_arrays(inner, origin) for name, inner in states.items()}
        known = [name for name in Iterate._fields if name in values]
        iterate = Iterate(**{name: values.pop(name) for name in known}, memory=memory)
        return cls(iterate=iterate, origin=origin, **values)


def map_arrays(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply a function to the arrays at the same place of named tuples and dicts of arrays."""
    first = trees[0]
    if isinstance(first, np.ndarray):
        return function(*trees)
    if isinstance(first, dict):
        return {k: map_arrays(function, *(tree[k] for tree in trees)) for k in first}
    if isinstance(first, tuple):
        return type(first)(*(map_arrays(function, *parts) for parts in zip(*trees, strict=True)))
    return first


def check_state(problem: Problem, state: State, new: Iterate) -> None:
    """Raise unless a state has the arrays of a new iterate at its x, and the same values.

    Gradients are compared only where the data were not: at nonsmooth points, rounding decides.
    """
    s = state.iterate
    wanted, found = _shapes(new), _shapes(s)
    if wanted.keys() != found.keys():
        raise ValueError("'state' was made with another rule: it remembers other things.")
    if wanted != found:
        raise ValueError("'state' was made with other blocks than this rule's.")
    with np.errstate(all="ignore"):
        relative = MAX_ULPS * float(np.finfo(s.x.dtype).eps)
        size = np.maximum(np.abs(s.f), np.abs(state.f_first))
        same = np.abs(new.f - s.f) <= relative * size
        if problem.loss.whole.matrix is None:
            change, gradient = np.abs(new.g - s.g).max(axis=0), np.abs(s.g).max(axis=0)
            same &= change <= MAX_GRADIENT_CHANGE * np.maximum(gradient, state.g_first)
        near = np.abs(new.phi - s.phi) <= relative * (size + np.abs(s.phi))
    near = near | (new.phi == s.phi)
    for what, holds in {"data of the loss are": same, "penalty is": near}.items():
        if not np.all(holds | ~np.isfinite(s.f)):
            raise other_problem(f"the {what} not the same: there is another value or gradient at x")


def other_problem(what: str) -> ValueError:
    """Return the error for a state of another problem."""
    return ValueError(
        f"'state' belongs to another problem: {what}. Give what the state was made with, or start "
        "a new run from its iterate with x0=state.x."
    )


def _shapes(s: Iterate) -> dict[str, Any]:
    """Return the shapes of values, gradients and memories, also of states in the memory."""
    values = {
        name: _shapes(v.iterate) if hasattr(v, "iterate") else np.shape(v)
        for name, v in s.memory.items()
    }
    return values | {"iterate": (s.x.shape, np.shape(s.f), np.shape(s.g), np.shape(s.phi))}


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
        return State.unpack(*load_arrays(source, STATE_FORMAT))
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(
            f"{source} is not a readable state file of adagrad_diff: {error}"
        ) from error


def _has_finite_squares(g: np.ndarray) -> bool:
    """Return whether the square of every entry is finite; rules add up squares."""
    if g.size < BLAS_THREADS and isfinite(np.vdot(g, g)):
        return True
    return float(np.abs(g).max()) < LARGEST_ROOT
