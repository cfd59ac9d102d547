"""What a run consists of: a solver at work on a problem, and what one iteration changes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from .fingerprint import recognise
from .problem import Problem
from .proximal_gradient import Iterate, Solver, double
from .state import State

DIVERGENCE_FACTOR = 1e30  # factor by which |f| exceeds 1 + |f(x^1)| when a run has diverged
BLAS_THREADS = 10_000  # entries from which on BLAS uses threads, which disturb those of products
LARGEST_ROOT = float(np.sqrt(np.finfo(np.float64).max))


class Progress(NamedTuple):
    """Everything that one iteration changes. It is replaced as a whole."""

    iterate: Iterate
    x_sum: Any  # x^2 + ... + x^{n+1}; None if it is not kept
    x_best: Any  # the iterate with the smallest objective; None if it is not kept
    fun_best: Any
    failed: Any  # whether the next iterate was not finite: then x stays the last good one
    norm: Any  # of the subgradient at x; NaN where it is not known

    def advanced(self, new: Iterate) -> Progress:
        """Return the progress after one more iteration; trajectories that fail stay where they are."""
        if isinstance(new.f, np.ndarray):
            return self._several_advanced(new)
        fun, x_sum, x_best = new.f + new.phi, self.x_sum, self.x_best
        if not (isfinite(fun) and _has_finite_squares(new.g)):
            return self._replace(failed=True)
        if x_sum is not None:
            x_sum = x_sum + new.x
        if fun < self.fun_best:
            return Progress(new, x_sum, x_best if x_best is None else new.x, fun, False, nan)
        return Progress(new, x_sum, x_best, self.fun_best, False, nan)

    def _several_advanced(self, new: Iterate) -> Progress:
        """Do the same for several trajectories."""
        fun = new.f + new.phi
        failed, x_sum, x_best, norm = self.failed, self.x_sum, self.x_best, np.empty(len(fun))
        norm[:] = nan
        finite = np.isfinite(fun)
        if np.count_nonzero(finite) < len(fun) or not _has_finite_squares(new.g):
            failed = failed | ~finite | ~(np.abs(double(new.g)) < LARGEST_ROOT).all(axis=0)
        added = new.x
        if np.count_nonzero(failed):
            new = map_arrays(
                lambda a, old: np.where(failed, old, a), new, _started(self.iterate, new)
            )
            added, fun = np.where(failed, 0.0, new.x), np.where(failed, np.inf, fun)
            norm = np.where(failed, self.norm, norm)
        if x_sum is not None:
            x_sum = x_sum + added
        better = fun < self.fun_best
        improved = np.count_nonzero(better)
        if improved == 0:
            return Progress(new, x_sum, x_best, self.fun_best, failed, norm)
        if x_best is not None:
            x_best = new.x if improved == len(fun) else np.where(better, new.x, x_best)
        return Progress(new, x_sum, x_best, np.where(better, fun, self.fun_best), failed, norm)


def _has_finite_squares(g: np.ndarray) -> bool:
    """Return whether the square of every entry is finite; rules add up squares."""
    if g.size < BLAS_THREADS and isfinite(np.vdot(g, g)):
        return True
    return float(np.abs(g).max()) < LARGEST_ROOT


def _started(old: Iterate, new: Iterate) -> Iterate:
    """Return the iterate with a point and a step, which it lacks before the first iteration."""
    if old.step is not None:
        return old
    return old._replace(point=old.x, step=map_arrays(lambda s: np.full_like(s, np.nan), new.step))


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


class Run:
    """A solver at work on a problem, for one trajectory or several side by side.

    Trajectories that have ended are stored and removed from the arrays: `columns` are the places of
    those that remain. A single trajectory without an axis of its own stays.
    """

    def __init__(
        self, solver: Solver, problem: Problem, progress: Progress, first: tuple[Any, Any]
    ):
        self.solver, self.problem, self.progress, (self.f_first, self.g_first) = (
            solver,
            problem,
            progress,
            first,
        )
        self.several = problem.trajectories is not None
        self.columns = np.arange(problem.trajectories or 1)
        self.ended: list[tuple[np.ndarray, Progress]] = []
        self.described: dict[str, Any] = {}  # the problem, for states
        self.notes: Callable[[], dict[str, np.ndarray]] = dict
        with np.errstate(over="ignore"):
            self.limit = DIVERGENCE_FACTOR * (1.0 + np.abs(self.f_first))  # of |f|, per trajectory

    @classmethod
    def begin(cls, solver: Solver, problem: Problem, x: np.ndarray, averages: bool = True) -> Run:
        """Start at x^1; without `averages`, neither the average nor the best iterate is kept."""
        solver = solver.prepared(problem)
        with np.errstate(all="ignore"):
            s = solver.init(problem, x)
            norm, fun = np.linalg.norm(double(s.g), axis=0), s.f + s.phi
            failed = ~np.isfinite(s.f + norm)
        x_sum = np.zeros(x.shape) if averages and not solver.averages else None
        unknown = np.full(np.shape(fun), nan)[()]
        progress = Progress(s, x_sum, x if averages else None, fun, failed, unknown)
        return cls(solver, problem, progress, (s.f, norm))

    @classmethod
    def resume(cls, solver: Solver, problem: Problem, state: State) -> Run:
        """Continue from a state; raise if it does not belong to this solver, or not to this problem."""
        solver, x = solver.prepared(problem), problem.flat(state.x)
        wanted = solver.memory_like(x)
        if wanted.keys() != state.memory.keys():
            raise ValueError(
                f"'state' was made with another rule than {solver.name}: it remembers other things."
            )
        if any(state.memory[name].shape != np.shape(array) for name, array in wanted.items()):
            raise ValueError("'state' was made with other blocks than this rule's.")
        recognise(problem.loss, state, problem.phi(x))
        s = Iterate(state.n, x, state.f, problem.flat(state.g), state.phi, state.memory)
        x_sum, x_best = (
            None if a is None else problem.flat(a) for a in (state.x_sum, state.x_best)
        )
        progress = Progress(s, x_sum, x_best, state.fun_best, state.failed, state.norm)
        return cls(solver, problem, progress, (state.f_first, state.g_first))

    def advance(self) -> None:
        """Make one iteration."""
        self.progress = self.progress.advanced(
            self.solver.step(self.problem, self.progress.iterate)
        )

    def end(self, ends: np.ndarray) -> None:
        """Store the trajectories that `ends` marks among the `columns`, and remove them."""
        stays = np.flatnonzero(~ends)
        vars(self).update(  # at once, so that an interrupt cannot leave half of it
            ended=[*self.ended, (self.columns[ends], self._select(np.flatnonzero(ends)))],
            progress=self._select(stays),
            columns=self.columns[stays],
            problem=self.problem.narrowed(len(stays)),
            solver=self.solver.select(stays),
        )

    def _select(self, chosen: np.ndarray) -> Progress:
        return map_arrays(lambda a: np.ascontiguousarray(a[..., chosen]), self.progress)  # type: ignore[no-any-return]

    def active(self, values: Any) -> Any:
        """Return what belongs to all trajectories for those in `columns`."""
        return values[self.columns] if self.ended else values

    @property
    def all(self) -> Progress:
        """The progress of all trajectories, also of those that have ended."""
        if not self.ended:
            return self.progress
        parts = [*self.ended, (self.columns, self.progress)]

        def joined(*arrays: np.ndarray) -> np.ndarray:
            whole = np.empty((*arrays[0].shape[:-1], len(self.f_first)), arrays[0].dtype)
            for (columns, _), array in zip(parts, arrays, strict=True):
                whole[..., columns] = array
            return whole

        return map_arrays(joined, *(part for _, part in parts))  # type: ignore[no-any-return]

    gain: float = inf  # how much the objective has improved lately, if the solver can tell

    @property
    def evaluations(self) -> Any:
        """Evaluations of the loss, per trajectory."""
        return self.all.iterate.n + 1

    def extra(self) -> dict[str, Any]:
        """Return what only results of this kind of run have."""
        return {}

    def passes(self) -> float:
        """Return the number of passes over the data so far."""
        return self.solver.passes(self.problem, self.progress.iterate)

    def row(self, norms: bool) -> tuple[Any, Any, Any]:
        """Return objective, mean step and subgradient norm of the trajectories in `columns`."""
        s = self.progress.iterate
        norm, step = self.subgradient_norm() if norms else nan, s.step
        if isinstance(step, np.ndarray) and step.ndim == s.x.ndim:  # else it is one number for all
            step = np.add.reduce(step) / len(step)
        return s.f + s.phi, step, norm

    def gradient_change(self) -> Any:
        """Return the root of the sum of all squared changes of the gradient; 0 if the rule has none."""
        s = self.progress.iterate
        if "total" not in s.memory:
            return 0.0
        return np.sqrt(np.reshape(s.memory["total"], (-1, *np.shape(s.f))).sum(axis=0))

    def least_curvatures(self) -> np.ndarray:
        """Return the smallest curvature of the loss at x of each trajectory in `columns`."""
        from ..certificates import least_curvature

        return np.array([least_curvature(self.problem.loss.whole, x) for x in self.points()])

    def subgradient_norm(self) -> Any:
        """Return ||u|| of the trajectories in `columns`, and keep it; NaN where x has not moved."""
        p = self.progress
        if p.iterate.step is None or not (
            np.isnan(p.norm).any() if self.several else p.norm != p.norm
        ):
            return p.norm
        norm = p.iterate.subgradient_norm()
        norm = np.where(p.failed, p.norm, norm) if self.several else p.norm if p.failed else norm
        self.progress = Progress(p.iterate, p.x_sum, p.x_best, p.fun_best, p.failed, norm)
        return norm

    def subgradient_rounding(self) -> Any:
        """Return how far the norm of the subgradient may be off.

        It is made of the difference of two points, divided by the step.
        """
        s = self.progress.iterate
        if s.step is None:
            return np.full(np.shape(s.f), np.inf)[()]
        with np.errstate(all="ignore"):
            sizes = np.linalg.norm(double(s.x) / s.step, axis=0)
        return float(np.finfo(s.x.dtype).eps) * (self.active(self.g_first) + sizes)

    def points(self) -> list[np.ndarray]:
        """Return x of each trajectory in `columns`, in the shape of the caller."""
        x = self.problem.for_caller(self.progress.iterate.x)
        return (
            [np.ascontiguousarray(x[..., k]) for k in range(x.shape[-1])] if self.several else [x]
        )

    def state(self) -> State:
        """Return the state of all trajectories in the shapes of the caller."""
        p, solver = self.all, self.solver
        s, shape = p.iterate, self.problem.shape
        if self.several:
            shape = (*shape, len(self.f_first))

        def like_x(values: Any) -> Any:
            return None if values is None else values.reshape(shape)

        average = solver.average(s) if solver.averages and p.x_best is not None else None
        state = State(
            n=s.n,
            x=like_x(s.x),
            f=s.f,
            phi=s.phi,
            g=like_x(s.g),
            memory=s.memory,
            x_sum=like_x(p.x_sum),
            average=like_x(average),
            x_best=like_x(p.x_best),
            fun_best=p.fun_best,
            f_first=self.f_first,
            g_first=self.g_first,
            norm=p.norm,
            failed=p.failed,
            rule=solver.name,
            batched=self.several,
            problem=self.described,
            notes=self.notes(),
            iterate=None if s.step is None else s,
        )
        return state
