"""The loop around every solver: when a run ends, what is recorded, and what an interrupt leaves.

An iteration replaces the state as a whole, so Ctrl-C loses at most one iteration. The table in
docs/guide/auto.md lists all ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from math import inf, nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from ..duality import unit
from .checkpoint import Checkpoint, describe, difference
from .problem import Problem
from .proximal_gradient import Solver
from .result import BUDGETS, RUNNING, SILENT, UNFINISHED, History, Status
from .state import State, map_arrays
from .stopping import StoppingCriterion

if TYPE_CHECKING:
    from .auto import PolishingSchedule

MINIMIZE_FORMAT = "adagrad-diff run 5"
HISTORY, DUAL_POINT = "history.", "dual_point"  # a prefix of names in the file of a run, and a name
DIVERGENCE_FACTOR = 1e30  # factor by which |f| exceeds 1 + |f(x^1)| when a run has diverged


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
        criterion: StoppingCriterion,
        *,
        max_iter: int,
        deadline: float = inf,
        callback: Callable[[Loop], Any] | None = None,
        record: int = 1,
        record_last: bool = False,
        norms: bool = True,
        polish: PolishingSchedule | None = None,
        checkpoint: RunCheckpoint | None = None,
    ):
        """Every `record`-th iteration is recorded, also the last one of the budget with `record_last`,
        and with subgradient norms if `norms` says so.
        """
        self.solver, self.problem, self.state, self.criterion = solver, problem, state, criterion
        self.left, self.deadline, self.callback = max_iter, deadline, callback
        self.every, self.record_last, self.norms = record, record_last, norms
        self.polish, self.checkpoint = polish, checkpoint
        self.columns, self.ended = np.arange(np.size(state.f)), list[tuple[np.ndarray, State]]()
        self.codes = np.full(np.size(state.f), RUNNING)
        self.n, self.begin, self.rows = int(np.max(state.n)), perf_counter(), list[Any]()
        self.polished: np.ndarray | None = None  # the polished answer, in the shape of the caller
        self._norm: tuple[Any, Any] = None, nan  # the last state whose norm was computed
        self._errors = np.geterr()  # how the caller wants to be warned of overflows

    # ------------------------------------------------------------------ iterations

    @np.errstate(all="ignore")  # overflows show in f, g and phi
    def run(self) -> None:
        """Run to the end. The status codes are in `codes`."""
        over = (self.codes != RUNNING).all()
        if not over and (self.codes != RUNNING).any():  # some had ended before the run was resumed
            self._remove(self.codes != RUNNING)
        if not over and self.polish is not None and self.polish.before_iterations(self):
            self.codes[:] = Status.CONVERGED
            return
        over = over or self._judge(RUNNING if self.left else Status.MAX_ITER)
        while not over:
            self._iterate()
            over = self._judge(self._stop())
            saved = self.checkpoint
            if saved is not None and not over and perf_counter() >= saved.due:
                saved.save(self)
        if self.polish is not None and self.codes[0] in UNFINISHED and self.polish.attempt(self):
            self.codes[:] = Status.CONVERGED

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
        if perf_counter() > self.deadline:
            return Status.MAX_TIME
        tol, state = self.criterion.tol, self.state
        if tol is None or state.iterate.gain == inf:
            return RUNNING
        least = tol * unit(state.fun_best, self.criterion.usual(state))
        return Status.STALLED if state.iterate.gain <= least else RUNNING

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
        self.codes[self.columns] = codes
        if ends.any() and not ends.all():
            self._remove(ends)
        return bool(ends.all())

    def _remove(self, ends: np.ndarray) -> None:
        """Store the trajectories that `ends` marks among the `columns`, and remove them."""
        stays = np.flatnonzero(~ends)
        vars(self).update(  # in one step, so that an interrupt cannot leave half of it
            ended=[*self.ended, (self.columns[ends], self.state.select(np.flatnonzero(ends)))],
            state=self.state.select(stays),
            columns=self.columns[stays],
            problem=self.problem.narrowed(len(stays)),
            solver=self.solver.select(stays),
        )

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
        oracle, column = self.problem.oracle_at(self.state.iterate.x)
        return oracle, self.leading() if self.state.batched else column

    def answer(self, state: State) -> np.ndarray:
        """Return the answer, as the caller sees x."""
        return state.x_best if self.solver.answers_best else state.x

    def points(self) -> list[np.ndarray]:
        """Return the answer of each trajectory in `columns`."""
        x = self.answer(self.state) if self.polished is None else self.polished
        return [x[..., k].copy() for k in range(x.shape[-1])] if self.state.batched else [x]

    def whole_state(self) -> State:
        """Return the state of all trajectories, also of those that have ended."""
        if not self.ended:
            return self.state
        parts = [(self.columns, self.state), *self.ended]

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
        now.update(nit=state.n, subgradient_norm=self.norm(), mean_step=state.mean_step)
        now.update(state=state)
        try:
            with np.errstate(**self._errors):
                callback(now)
        except StopIteration:
            return True
        return False

    # ------------------------------------------------------------------ the history

    def _record(self, state: State, n: int) -> None:
        s, norm = state.iterate, self.norm(state) if self.norms else nan
        values: Any = s.fun, s.mean_step(), norm
        if state.batched:
            values = [self._widened(np.where(state.failed, nan, value)) for value in values]
        elif state.failed:  # the only trajectory has not moved
            return
        self.rows.append((n, *values, self.seconds, s.passes))

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
        rows = [row for row in self.rows if row[0] <= self.n]
        return History.from_rows(rows, self.codes.shape if self.state.batched else ())


def _any(values: Any) -> bool:
    """Return whether a truth value, or one of several, is true."""
    return bool(values.any()) if isinstance(values, np.ndarray) else bool(values)


class RunCheckpoint(Checkpoint):
    """The checkpoint of a call of `minimize`: a state, the history, and how far budgets are used."""

    def __init__(self, path: Any, every: float):
        super().__init__(path, MINIMIZE_FORMAT)
        self.every, self.due = every, perf_counter() + every
        self.header: dict[str, Any] = {"begun": 0, "seconds": 0.0, "ended": False}

    def begin(self, x0: Any, state: State | None, call: dict[str, Any]) -> State | None:
        """Return the state in the file, or that of the call; `call` holds when the call ends."""
        content = self.content
        self.check_writable()
        begun = None if state is None else int(np.max(state.n))
        x0 = None if x0 is None else _check.real_array(x0, "x0")
        start = {"x0": x0, "state": None if state is None else [begun, state.x]}
        self.header |= {"start": describe(start), "begun": begun or 0, "call": call}
        if content is None:
            return state
        header, arrays = content
        try:
            self.codes = arrays.pop("codes")  # the status of each trajectory
            self.dual_point = arrays.pop(DUAL_POINT, None)  # of the best bound
            columns = [arrays.pop(HISTORY + field.name) for field in fields(History)]
            self.rows = list(zip(*columns, strict=True))
            state = State.unpack(header["state"], arrays)
            self.x = state.x  # the answer, if the run has ended
            if self.codes.shape != (np.size(state.f),):
                raise ValueError("its status codes are not those of a run")
        except Exception as error:  # a file that was made up can raise anything
            raise self.unreadable(error) from error
        if (where := difference(header["start"], self.header["start"])) is not None:
            name = "state" if where.startswith("state") else "x0"
            raise self.refusal(f"its run began elsewhere, for {name!r} is not the same")
        self.before = header["call"]
        self.header |= {name: header[name] for name in ("begun", "seconds", "ended")}
        return state

    def restore(self, loop: Loop) -> bool:
        """Set budgets, history and status codes of a loop to what the file holds.

        Trajectories that have ended by themselves do not continue, unless another tolerance is
        asked. Return whether the run has ended and would end there again, with the budgets of this
        call. What the file says about the end is not believed: the point must be as good as it says.
        """
        header, call, criterion = self.header, self.header["call"], loop.criterion
        loop.left = max(0, loop.left - (loop.n - header["begun"]))
        loop.begin -= header["seconds"]
        loop.deadline -= header["seconds"]
        if self.content is None:
            return False
        loop.rows, codes, before = self.rows, self.codes, self.before
        if self.dual_point is not None and criterion.certifier and not loop.state.batched:
            criterion.certifier.recall(self.dual_point, self.x)
        if any(call[name] != before[name] for name in ("tol", "stop", "finish")):
            return False
        more = {Status.MAX_ITER: "max_iter", Status.MAX_TIME: "max_time"}
        larger = any(call[name] > before[name] for code, name in more.items() if code in codes)
        converged = codes == Status.CONVERGED

        def holds() -> bool:
            if not converged.any() or criterion.tol is None:
                return not converged.any()
            return bool(np.all(criterion.reached(loop, last=True) | ~converged))

        with np.errstate(all="ignore"):
            if header["ended"] and not larger and not np.isin(codes, SILENT).any():
                loop.polished = self.x if loop.solver.answers_best else None
                if holds():
                    loop.codes = codes
                    return True
                loop.polished = None
            if holds():
                loop.codes = np.where(np.isin(codes, (*BUDGETS, *SILENT)), RUNNING, codes)
        return False

    def refused(self, error: ValueError) -> ValueError:
        """Return an error about a state as one about the file, if the state is that of the file."""
        if self.content is None:
            return error
        what = str(error).partition(". ")[0].rstrip(".")
        return self.refusal(what.replace("'state' ", "it "))

    def save(self, loop: Loop, final: State | None = None) -> None:
        """Write the file. `final` is the state at the answer of a run that has ended."""
        about, arrays = (final or loop.whole_state()).pack()
        arrays |= {HISTORY + name: array for name, array in vars(loop.history()).items()}
        arrays["codes"] = loop.codes.astype(np.int64)
        certifier = loop.criterion.certifier
        if certifier is not None and certifier.point is not None:
            arrays[DUAL_POINT] = certifier.point
        progress = {"seconds": loop.seconds, "ended": final is not None, "state": about}
        self.write(self.header | progress, arrays)
        self.due = perf_counter() + self.every
