"""The loop around every solver: when a run ends, what is recorded, and what an interrupt leaves.

An iteration replaces the state as a whole, so Ctrl-C loses at most one iteration. docs/ends.md has a
table of all ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import inf, nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..duality.tolerance import NOTHING, unit
from .problem import Problem
from .proximal_gradient import Solver
from .result import BUDGETS, RUNNING, UNFINISHED, Status
from .state import State, map_arrays
from .stopping import SubgradientCriterion

if TYPE_CHECKING:
    from .polishing_schedule import PolishingSchedule

DIVERGENCE_FACTOR = 1e30  # factor by which |f| exceeds 1 + |f(x^1)| when a run has diverged
STRAIGHT_FALL = 1e6  # factor by which an objective may fall along a straight line


class Loop:
    """Iterates a solver until every trajectory has ended, and records the history.

    Trajectories that have ended are stored and removed from the arrays of `state`: `columns` are the
    places of those that remain. A single trajectory without an axis of its own stays.
    """

    def __init__(
        self,
        solver: Solver,
        problem: Problem,
        state: State,
        criterion: SubgradientCriterion,
        *,
        max_iter: int,
        deadline: float = inf,
        callback: Callable[[Loop], Any] | None = None,
        record: int = 1,
        record_last: bool = False,
        norms: bool = True,
        polish: PolishingSchedule | None = None,
        save: Callable[[Loop], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ):
        """`save` writes a checkpoint when due, `cancelled` says whether to stop.

        Every `record`-th iteration is recorded, also the last one of the budget with `record_last`,
        and with subgradient norms if `norms` says so.
        """
        self.solver, self.problem, self.state = solver, problem, state
        self.criterion: Any = criterion
        self.left, self.deadline = max_iter, deadline
        self.callback, self.cancelled = callback, cancelled
        self.every, self.record_last, self.norms = record, record_last, norms
        self.polish, self.save = polish, save
        self.columns, self.ended = np.arange(np.size(state.f)), list[tuple[np.ndarray, State]]()
        self.codes = np.full(np.size(state.f), RUNNING)
        self.n, self.begin = int(np.max(state.n)), perf_counter()
        self.rows, self.past = list[tuple[Any, ...]](), History.empty(np.shape(state.f))
        self.interrupted = False
        self.polished: np.ndarray | None = None  # the polished answer, in the shape of the caller
        self._norm: tuple[Any, Any] = None, nan  # the last state whose norm was computed
        self._errors = np.geterr()  # how the caller wants to be warned of overflows

    # ------------------------------------------------------------------ iterations

    def run(self) -> None:
        """Run to the end. The status codes are in `codes`."""
        try:
            if (self.codes != RUNNING).all():
                return
            if (self.codes != RUNNING).any():  # some had ended before the run was resumed
                self._remove(self.codes != RUNNING)
            with np.errstate(all="ignore"):  # overflows show in f, g and phi
                if self.polish is not None and self.polish.before_iterations(self):
                    self.codes[:] = Status.CONVERGED
                    return
                over = self._judge(RUNNING if self.left else Status.MAX_ITER)
                while not over:
                    self._iterate()
                    over = self._judge(self._stop())
                    if self.save is not None and not over:
                        self.save(self)
                polish = self.polish if self.codes[0] in UNFINISHED else None
                if polish is not None and polish.at_end(self):
                    self.codes[:] = Status.CONVERGED
        except KeyboardInterrupt:
            self.interrupted = True
            self.codes[self.codes == RUNNING] = Status.INTERRUPTED

    def _iterate(self) -> None:
        state = self.state.advanced(self.solver.step(self.problem, self.state.iterate))
        n, left = self.n + 1, self.left - 1
        if self.every and (n % self.every == 0 or (self.record_last and left == 0)):
            self._record(state, n)
        vars(self).update(state=state, n=n, left=left)  # an interrupt must not come in between
        self.criterion.observe(self)

    def _stop(self) -> int:
        """Return the status that ends all trajectories after this iteration, or RUNNING."""
        if self.polish is not None and self.polish.after_iteration(self):
            return Status.CONVERGED
        if self.callback is not None and self.callback(self):
            return Status.CALLBACK
        if self.left == 0:
            return Status.MAX_ITER
        if perf_counter() > self.deadline or (self.cancelled is not None and self.cancelled()):
            return Status.MAX_TIME
        tol, state = self.criterion.tol, self.state
        gain = inf if tol is None else self.solver.gain(state.iterate)
        if gain < inf and gain <= tol * unit(state.fun_best, self.criterion.usual(state.f_first)):
            return Status.STALLED
        return RUNNING

    def _judge(self, stop: int) -> bool:
        """End trajectories that have converged or failed, and all if `stop` says so.

        Return whether none is left.
        """
        state = self.state
        diverged = abs(state.f) > DIVERGENCE_FACTOR * (1.0 + abs(state.f_first))
        reached: Any = False
        if stop != Status.CONVERGED:
            reached = self.criterion.reached(self, last=stop != RUNNING)
        if stop == RUNNING and not (_any(reached) or _any(diverged) or _any(state.failed)):
            return False
        codes = np.full(len(self.columns), int(stop))
        codes[reached] = Status.CONVERGED
        codes[diverged | self.criterion.no_minimizer] = Status.DIVERGED
        codes[state.failed] = Status.NOT_FINITE
        ends = codes != RUNNING
        if ends.any():
            self.codes[self.columns] = codes
            if not ends.all():
                self._remove(ends)
        return bool(ends.all())

    def _remove(self, ends: np.ndarray) -> None:
        """Store the trajectories that `ends` marks among the `columns`, and remove them."""
        stays = np.flatnonzero(~ends)
        vars(self).update(  # at once, so that an interrupt cannot leave half of it
            ended=[*self.ended, (self.columns[ends], self.state.select(np.flatnonzero(ends)))],
            state=self.state.select(stays),
            columns=self.columns[stays],
            problem=self.problem.narrowed(len(stays)),
            solver=self.solver.select(stays),
        )

    def final_codes(self, state: State) -> np.ndarray:
        """Return the status codes, given the state after the last iteration or polishing."""
        g, x = state.iterate.g, state.iterate.x
        with np.errstate(over="ignore", invalid="ignore"):
            norm = self.problem.norm(self.whole_state().iterate.g)
            straight = np.abs(norm - state.g_first) <= NOTHING * state.g_first
            falls = straight & (state.fun < -STRAIGHT_FALL * (1.0 + np.abs(state.f_first)))
        broken = ~(np.isfinite(g) & np.isfinite(x)).all(axis=0) | ~np.isfinite(state.f)
        broken = np.atleast_1d(broken | np.isnan(state.phi))
        unbounded = np.atleast_1d(falls) & np.isin(self.codes, BUDGETS)
        codes = np.where(unbounded, Status.DIVERGED, self.codes)
        return np.where(broken & (codes != Status.INTERRUPTED), Status.NOT_FINITE, codes)

    # ------------------------------------------------------------------ what others ask

    def norm(self, state: State | None = None) -> Any:
        """Return the norm of a subgradient of each trajectory in `columns`."""
        state = self.state if state is None else state
        if self._norm[0] is not state:
            self._norm = state, state.iterate.subgradient_norm(self.problem.scale)
        return self._norm[1]

    def leading(self) -> int:
        """Return the trajectory with the smallest objective."""
        return int(np.argmin(np.where(self.state.failed, inf, self.state.iterate.fun)))

    def oracle(self) -> tuple[Any, int | None]:
        """Return the oracle of the loss at the leading trajectory, and which of its columns that is."""
        column = self.leading() if self.state.batched else None
        return self.solver.oracle(self.problem, self.state.iterate, column)

    def answer(self, state: State) -> np.ndarray:
        """Return the answer, as the caller sees x."""
        return state.x_best if self.solver.answers_best else state.x

    def points(self) -> list[np.ndarray]:
        """Return the answer of each trajectory in `columns`."""
        x = self.answer(self.state) if self.polished is None else self.polished
        return [x[..., k].copy() for k in range(x.shape[-1])] if self.state.batched else [x]

    def holds(self) -> bool:
        """Return whether trajectories that are said to have converged have; files are not believed."""
        converged = self.codes == Status.CONVERGED
        if not converged.any() or self.criterion.tol is None:
            return not converged.any()
        with np.errstate(all="ignore"):
            return bool(np.all(self.criterion.reached(self, last=True) | ~converged))

    def whole_state(self) -> State:
        """Return the state of all trajectories, also of those that have ended."""
        if not self.ended:
            return self.state
        parts = [*self.ended, (self.columns, self.state)]

        def joined(*arrays: np.ndarray) -> np.ndarray:
            whole = np.empty((*arrays[0].shape[:-1], len(self.codes)), arrays[0].dtype)
            for (columns, _), array in zip(parts, arrays, strict=True):
                whole[..., columns] = array
            return whole

        state: State = map_arrays(joined, *(part for _, part in parts))
        return state

    def call_back(self, callback: Callable[[Any], Any]) -> bool:
        """Call a user's callback with a result; return whether it ends the run."""
        from scipy.optimize import OptimizeResult

        state = self.whole_state()
        fun = state.fun_best if self.solver.answers_best else state.fun
        now = OptimizeResult(x=self.answer(state).copy(), fun=fun, fun_best=state.fun_best)
        now.update(
            nit=state.n, subgradient_norm=self.norm(), mean_step=state.mean_step, state=state
        )
        try:
            with np.errstate(**self._errors):
                callback(now)
        except StopIteration:
            return True
        return False

    # ------------------------------------------------------------------ the history

    def _record(self, state: State, n: int) -> None:
        failed, passes = state.failed, self.solver.passes(self.problem, state.iterate)
        s, norm = state.iterate, self.norm(state) if self.norms else nan
        values = s.fun, s.mean_step(), norm
        if state.batched:
            values = tuple(self._widened(np.where(failed, nan, value)) for value in values)  # type: ignore[assignment]
        if failed is not True:  # else the only trajectory has not moved
            self.rows.append((n, *values, self.seconds, passes))

    def _widened(self, values: np.ndarray) -> np.ndarray:
        """Return values of the trajectories that run among NaN for the others."""
        full = np.full(len(self.codes), nan)
        full[self.columns] = values
        return full

    @property
    def seconds(self) -> float:
        """Since the run began; with a checkpoint, of all calls together."""
        return perf_counter() - self.begin

    def history(self) -> History:
        """Return what was recorded, without an iteration that an interrupt has undone."""
        return self.past.extended([row for row in self.rows if row[0] <= self.n])


def _any(values: Any) -> bool:
    """Return whether a truth value, or one of several, is true."""
    return bool(values.any()) if isinstance(values, np.ndarray) else bool(values)


@dataclass(repr=False)
class History:
    """What was recorded, one entry per recorded iteration.

    With trajectories, arrays have shape (entries, B), and NaN after a trajectory has ended.
    """

    iteration: np.ndarray  # n, counted from the very first start
    objective: np.ndarray  # F(x^{n+1})
    mean_step: np.ndarray  # mean over coordinates of eta / w^n
    subgradient_norm: np.ndarray  # ||u^{n+1}||
    time: np.ndarray  # seconds since the call began; with a checkpoint, of all its calls together
    passes: np.ndarray  # passes over the data: one per gradient, with minibatches a part of one

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> History:
        """Return a history without entries; `shape` is that of the trajectories, () without."""
        arrays = [np.empty((0, *s)) for s in ((), shape, shape, shape, (), ())]
        return cls(arrays[0].astype(np.int64), *arrays[1:])

    def extended(self, rows: list[tuple[Any, ...]]) -> History:
        """Return a history with further entries."""
        if not rows:
            return self
        columns = zip(self.arrays().values(), zip(*rows, strict=True), strict=True)
        return History(*(np.concatenate([past, np.array(c, past.dtype)]) for past, c in columns))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        if not len(self.iteration):
            return "History(nothing recorded)"
        first, last = self.iteration[0], self.iteration[-1]
        return f"History({len(self.iteration)} entries, iterations {first} to {last})"
