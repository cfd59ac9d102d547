"""The loop around every solver: when a run ends, what is recorded, and what an interrupt leaves behind.

`Run` holds what one iteration changes and replaces it as a whole. `run_loop` stops it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, nan
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..common.tolerance import NOTHING
from .gap import GapCriterion
from .history import History, Record
from .problem import Problem
from .proximal_gradient import Iterate, Solver, double
from .state import State
from .status import RUNNING, Status

DIVERGENCE_FACTOR = 1e30  # factor by which |f| exceeds 1 + |f(x^1)| when a run has diverged
LARGEST_ROOT = float(np.sqrt(np.finfo(np.float64).max))
ACCUMULATION_PERIOD = 16  # iterations between two looks at how much gradients have changed


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
        with np.errstate(invalid="ignore"):  # infinities of both signs
            fun = new.f + new.phi
        failed, norm, x_sum, x_best = self.failed, np.full(len(fun), nan), self.x_sum, self.x_best
        if not (np.isfinite(fun).all() and _has_finite_squares(new.g)):
            failed = failed | ~np.isfinite(fun) | ~(np.abs(double(new.g)) < LARGEST_ROOT).all(axis=0)
        added = new.x
        if failed.any():
            new = map_arrays(lambda a, old: np.where(failed, old, a), new, _started(self.iterate, new))
            added, fun = np.where(failed, 0.0, new.x), np.where(failed, np.inf, fun)
            norm = np.where(failed, self.norm, norm)
        if x_sum is not None:
            x_sum = x_sum + added
        better = fun < self.fun_best
        if x_best is not None and better.any():
            x_best = new.x if better.all() else np.where(better, new.x, x_best)
        return Progress(new, x_sum, x_best, np.where(better, fun, self.fun_best), failed, norm)


def _has_finite_squares(g: np.ndarray) -> bool:
    """Return whether the square of every entry is finite; rules add up squares."""
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

    def __init__(self, solver: Solver, problem: Problem, progress: Progress, first: tuple[Any, Any]):
        self.solver, self.problem, self.progress, (self.f_first, self.g_first) = solver, problem, progress, first
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
        s = solver.init(problem, x)
        with np.errstate(all="ignore"):
            norm, fun = np.linalg.norm(double(s.g), axis=0), s.f + s.phi
            failed = ~np.isfinite(s.f + norm)
        x_sum = np.zeros(x.shape) if averages and not solver.averages else None
        unknown = np.full(np.shape(fun), nan)[()]
        progress = Progress(s, x_sum, x if averages else None, fun, failed, unknown)
        return cls(solver, problem, progress, (s.f, norm))

    @classmethod
    def resume(cls, solver: Solver, problem: Problem, state: State) -> Run:
        """Continue from a state, which has been checked to belong to this problem and solver."""
        s = Iterate(state.n, *(problem.flat(state.x), state.f, problem.flat(state.g), state.phi), state.memory)
        x_sum, x_best = (None if a is None else problem.flat(a) for a in (state.x_sum, state.x_best))
        progress = Progress(s, x_sum, x_best, state.fun_best, state.failed, state.norm)
        return cls(solver.prepared(problem), problem, progress, (state.f_first, state.g_first))

    def advance(self) -> None:
        """Make one iteration."""
        self.progress = self.progress.advanced(self.solver.step(self.problem, self.progress.iterate))

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

    def subgradient_norm(self) -> Any:
        """Return ||u|| of the trajectories in `columns`, and keep it; NaN where x has not moved."""
        p = self.progress
        if p.iterate.step is not None and np.isnan(p.norm).any():
            with np.errstate(all="ignore"):
                u = double(p.iterate.subgradient())
                norm = np.sqrt(np.einsum("i...,i...->...", u, u))
            self.progress = p._replace(norm=np.where(p.failed, p.norm, norm)[()])
        return self.progress.norm

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
        return [np.ascontiguousarray(x[..., k]) for k in range(x.shape[-1])] if self.several else [x]

    def state(self) -> State:
        """Return the state of all trajectories in the shapes of the caller."""
        p, solver = self.all, self.solver
        s, shape = p.iterate, (*self.problem.shape, *np.shape(self.f_first))

        def like_x(values: Any) -> Any:
            return None if values is None else values.reshape(shape)

        average = solver.average(s) if solver.averages and p.x_best is not None else None
        steps = None if s.step is None else np.broadcast_to(s.step, s.x.shape).astype(s.x.dtype)
        return State(
            n=s.n,
            x=like_x(s.x),
            f=s.f,
            phi=s.phi,
            g=like_x(s.g),
            memory={name: np.asarray(values) for name, values in s.memory.items()},
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
            step=like_x(steps),
        )


class Loop:
    """Iterates a run until every trajectory has ended, and records its history."""

    def __init__(
        self,
        run: Run,
        *,
        max_iter: int,
        deadline: float = np.inf,
        tol: float | None = None,
        gap: GapCriterion | None = None,
        callback: Callable[[Loop], Any] | None = None,
        record: int = 1,
        record_end: bool = False,
        norms: bool = True,
        history: History | None = None,
        codes: np.ndarray | None = None,
        begin: float | None = None,
        save: Callable[[Loop], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ):
        """`save` writes a checkpoint when due, `cancelled` says whether to stop.

        Every `record`-th iteration is recorded, also the last one of the budget with `record_end`, and
        with subgradient norms if `norms` says so.
        """
        self.run, self.left, self.deadline, self.tol, self.gap = run, max_iter, deadline, tol, gap
        self.callback, self.every, self.record_end, self.norms = callback, record, record_end, norms
        self.save, self.cancelled = save, cancelled
        self.codes = np.full(np.size(run.f_first), RUNNING) if codes is None else codes
        self.n, self.begin = int(np.max(run.progress.iterate.n)), perf_counter() if begin is None else begin
        self.record = Record(np.shape(run.f_first), history)
        self.interrupted = False

    def iterate(self) -> None:
        """Run to the end; the status codes are in `codes`."""
        run = self.run
        try:
            if not np.any(self.codes == RUNNING):
                return
            if np.any(self.codes != RUNNING):  # some had ended before the run was resumed
                run.end(self.codes != RUNNING)
            over = self._judge(RUNNING if self.left else Status.MAX_ITER)
            while not over:
                run.advance()
                self._count()
                over = self._judge(self._look())
                if self.save is not None and not over:
                    self.save(self)
        except KeyboardInterrupt:
            self.interrupted = True
            if np.max(run.progress.iterate.n) > self.n:  # Ctrl-C came between an iteration and its record
                self._count()
            self.codes[self.codes == RUNNING] = Status.INTERRUPTED

    def _count(self) -> None:
        self.left -= 1
        self.n += 1
        if self.every and (self.n % self.every == 0 or (self.record_end and self.left == 0)):
            self._record()

    def _look(self) -> int:
        """Return the status that ends all trajectories after this iteration, or RUNNING."""
        if self.gap is not None:
            self.gap.observe(self.run)
        stop: int = RUNNING
        if self.callback is not None and self.callback(self):
            stop = Status.CALLBACK
        elif self.left == 0:
            stop = Status.MAX_ITER
        elif perf_counter() > self.deadline or (self.cancelled is not None and self.cancelled()):
            stop = Status.MAX_TIME
        if self.gap is not None and stop != RUNNING:
            self.gap.check(self.run)
        return stop

    def _judge(self, stop: int) -> bool:
        """End trajectories that have converged or failed, and all if `stop` says so. Return if none is left."""
        run, p = self.run, self.run.progress
        away = np.abs(p.iterate.f) > run.active(run.limit) if run.several else abs(p.iterate.f) > run.limit
        if stop == RUNNING and self.tol is None and not (np.any(p.failed | away) if run.several else p.failed or away):
            return False
        codes = np.full(len(run.columns), int(stop))
        codes[self._reached()] = Status.CONVERGED
        codes[away | (self.gap is not None and self.gap.no_minimizer)] = Status.DIVERGED
        codes[p.failed] = Status.NOT_FINITE
        ends = codes != RUNNING
        if ends.any():
            run.subgradient_norm()
            self.codes[run.columns] = codes
            if not ends.all():
                run.end(ends)
        return bool(ends.all())

    def _reached(self) -> np.ndarray:
        """Return which trajectories are within the tolerance, by the gap or by a subgradient."""
        run, tol, gap = self.run, self.tol, self.gap
        reached = np.zeros(len(run.columns), bool)
        if tol is None:
            return reached
        s, usual = run.progress.iterate, 0.0
        if gap is not None:
            usual = run.active(gap.usual(run.f_first))
            reached = reached | gap.reached(tol, s.f + s.phi, run.points(), usual)
        if gap is None or gap.hopeless:
            small = np.atleast_1d(self._small_subgradient(tol, self.n % ACCUMULATION_PERIOD == 0))
            if gap is not None and small.any():
                norm = run.progress.norm + run.subgradient_rounding()
                small = small & gap.meaningful(tol, self.n, s.f + s.phi, norm, run.points(), usual)
            reached = reached | small
        return reached

    def _small_subgradient(self, tol: float, changes: bool) -> Any:
        """Return where the subgradient is small relative to the first gradient.

        With `changes`, also where it is next to nothing relative to the sum of all that gradients have
        changed by: the first one may vanish.
        """
        run, s = self.run, self.run.progress.iterate
        norm, g_first = run.subgradient_norm(), run.active(run.g_first)
        with np.errstate(all="ignore"):  # gradients may be infinite
            small = norm <= tol * g_first
            if changes and "total" in s.memory:
                total = np.reshape(s.memory["total"], (-1, *np.shape(s.f)))
                small = small | (norm <= tol * NOTHING * np.sqrt(total.sum(axis=0)))
        return small & (norm < np.inf)

    def holds(self) -> bool:
        """Return whether a run that is said to have converged is as good as that; files are not believed."""
        converged = self.codes == Status.CONVERGED
        if self.tol is None or not converged.any():
            return not converged.any()
        good = np.zeros(converged.shape, bool)
        if self.gap is not None:
            good |= self.gap.within(self.tol, self.run.points(), self.gap.usual(self.run.f_first))
        if self.gap is None or self.gap.hopeless:
            good |= self._small_subgradient(self.tol, changes=True)
        return bool(np.all(good | ~converged))

    def _record(self) -> None:
        run, p = self.run, self.run.progress
        s = p.iterate
        if p.failed is True:  # the only trajectory has not moved
            return
        norm, step = run.subgradient_norm() if self.norms else nan, np.asarray(s.step)
        if step.ndim > np.ndim(s.f):  # else a rule has returned one number
            step = step.sum(axis=0) / len(step)
        row = (s.f + s.phi, step, norm)
        if run.several:
            row = tuple(self._widen(np.where(p.failed, nan, values)) for values in row)  # type: ignore[assignment]
        self.record.add(self.n, *row, self.seconds, run.solver.passes(run.problem, s))

    def _widen(self, values: np.ndarray) -> np.ndarray:
        """Return values of the trajectories that run among NaN for the others."""
        full = np.full(len(self.codes), nan)
        full[self.run.columns] = values
        return full

    @property
    def seconds(self) -> float:
        """Since the run began; with a checkpoint, of all calls together."""
        return perf_counter() - self.begin
