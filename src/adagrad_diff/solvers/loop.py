"""The loop around every solver, and its stopping criterion: when a run ends, and what is recorded.

An iteration replaces the state as a whole, so Ctrl-C loses at most one iteration. The table in
docs/guide/auto.md lists all ends.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..duality import NEGLIGIBLE_SHARE, unit
from .problem import Problem, double
from .proximal_gradient import Solver
from .result import RUNNING, UNFINISHED, History, Status
from .state import State, map_arrays

if TYPE_CHECKING:
    from ..duality import Certificate, Certifier
    from .auto import PolishingSchedule
    from .checkpoint import RunCheckpoint

CHECK_GROWTH = 1.3  # factor by which a run grows between two evaluations of the duality gap
ACCUMULATION_PERIOD = 16  # iterations between two looks at how much gradients have changed
DIVERGENCE_FACTOR = 1e30  # factor by which |f| exceeds 1 + |f(x^1)| when a run has diverged


class Loop:
    """Iterates a solver until every trajectory has ended, and records the history.

    Trajectories that have ended are stored and removed from the arrays of `state`: `columns` are
    the places of those that remain. A single trajectory without an axis of its own stays.
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
        """Every `record`-th iteration is recorded, also the last one of the budget with
        `record_last`, and with subgradient norms if `norms` says so.
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
        """Return the oracle of the loss at the leading trajectory, and that column of it."""
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


class StoppingCriterion:
    """Without a certifier, stop when ||u|| <= tol ||g^1||, u a subgradient of F at x.

    ||g^1|| may vanish. Where the rule has accumulated squares of gradients or of their differences,
    ||g^1|| counts as at least a millionth of the root of their sum.

    With a certifier, stop when the duality gap is at most tol |F(x)|. If no dual point is found, a
    small subgradient is accepted where the curvature of the loss shows that the objective is near
    its optimum. Both are evaluated at iterations 1.3^k, at the end, and at ends of stages.
    """

    no_minimizer = False  # whether the objective is known to decrease forever
    next_check = 1  # the next iteration at which the gap is evaluated

    def __init__(self, tol: float | None, certifier: Certifier | None = None):
        self.tol, self.certifier = tol, certifier
        if certifier is not None:
            certifier.accuracy = tol or 0.0

    @property
    def certifies(self) -> bool:
        """Whether there is a dual function."""
        return self.certifier is not None and self.certifier.available

    def observe(self, loop: Loop) -> None:
        """Take note of an iterate."""
        if self.certifier is not None:
            self.certifier.observe(loop.oracle)

    def reached(self, loop: Loop, last: bool = False) -> Any:
        """Return which trajectories have converged; `last` means that the run ends here anyway."""
        certifier, state = self.certifier, loop.state
        if certifier is None:
            return self._small_subgradient(loop, last)
        if not (last or state.iterate.stage_ends or loop.n >= self.next_check):
            return False
        while self.next_check <= loop.n:  # the same iterations in a run that is resumed
            self.next_check = int(CHECK_GROWTH * self.next_check) + 1
        if loop.n and certifier.available:
            self._improve_bound(loop, last)
        if state.iterate.stage_ends:
            certifier.restart()
        if self.tol is None:
            return False
        points, reached = loop.points(), np.zeros(len(loop.columns), bool)
        if np.any(certifier.gap(state.fun) <= self.tol * unit(state.fun, self.usual(state))):
            reached = self.within(state, points)
        if certifier.hopeless and not reached.all():
            small = np.atleast_1d(self._small_subgradient(loop, last=True))
            if small.any():
                reached |= small & self._meaningful(loop, points)
        return reached

    def within(self, state: State, points: list[np.ndarray]) -> np.ndarray:
        """Return at which points the gap is within the tolerance."""
        found, usual = self.certificates(points), np.broadcast_to(self.usual(state), len(points))
        limits = [(self.tol or 0.0) * unit(c.fun, u) for c, u in zip(found, usual, strict=False)]
        reached = [c.gap <= limit < np.inf for c, limit in zip(found, limits, strict=True)]
        return np.array(reached or [False] * len(points))

    def usual(self, state: State) -> Any:
        """Return the usual size of objectives: that of constant predictions, else |f(x^1)|.

        The size at the start is used only if no other is known: a bad start must not loosen tol.
        """
        return (self.certifier and self.certifier.scale) or np.abs(state.f_first)

    def certificates(self, points: list[np.ndarray]) -> list[Certificate]:
        """Return what is proven about each point; nothing without a dual function."""
        certifier: Any = self.certifier
        return [certifier.certificate(x) for x in points] if self.certifies else []

    def improve_at(self, x: np.ndarray, g: np.ndarray, oracle: Any) -> None:
        """Improve the bound at the answer of a run, which the oracle has evaluated last."""
        certifier: Any = self.certifier
        if self.certifies:
            r = None if certifier.dual.nonsmooth else certifier.dual.residuals(oracle, None)
            certifier.improve(x, g, r, x, True)

    def has_no_minimizer(self, x: np.ndarray) -> bool:
        """Return, and remember, whether the objective keeps decreasing along x."""
        self.no_minimizer = self.certifier is not None and self.certifier.has_no_minimizer(x)
        return self.no_minimizer

    def _small_subgradient(self, loop: Loop, last: bool) -> Any:
        if self.tol is None:
            return False
        state, norm = loop.state, loop.norm()
        with np.errstate(all="ignore"):  # gradients may be infinite
            small = norm <= self.tol * state.g_first
            if last or loop.n % ACCUMULATION_PERIOD == 0:
                total = loop.solver.rule.accumulated(state.memory)
                if total is not None:
                    change = np.sqrt(np.reshape(total, (-1, *np.shape(state.f))).sum(axis=0))
                    small = small | (norm <= self.tol * NEGLIGIBLE_SHARE * change)
        return small & (norm < np.inf)

    def _improve_bound(self, loop: Loop, last: bool) -> None:
        """Try the dual points that belong to the trajectory with the smallest objective."""
        certifier, layout, state = self.certifier, loop.problem.layout, loop.state
        assert certifier is not None
        x, g, best = state.iterate.x, state.iterate.g, state.best
        best = x if best is None else best
        if state.batched:
            x, g, best = (a[:, loop.leading()] for a in (x, g, best))
        r = certifier.dual.residuals(*loop.oracle())
        certifier.improve(layout.back(x), layout.gradient(g), r, layout.back(best), last)

    def _meaningful(self, loop: Loop, points: list[np.ndarray]) -> np.ndarray:
        """Return whether the subgradients, with their rounding, say that F(x) is near F_star.

        They do not where the curvature of the loss is tiny.
        """
        from ..duality import least_curvature

        state, problem, certifier = loop.state, loop.problem, self.certifier
        assert certifier is not None
        scale = None if np.ndim(problem.scale) == 0 else problem.scale
        with np.errstate(all="ignore"):
            columns = state.iterate.x.reshape(problem.size, -1).T
            shaped = [np.ascontiguousarray(problem.layout.shaped(x)) for x in columns]
            curvature = [least_curvature(problem.loss.whole, x, scale) for x in shaped]
            sizes = problem.norm(double(state.iterate.x) / state.iterate.step)
            rounding = float(np.finfo(problem.dtype).eps) * (state.g_first + sizes)
            errors = [certifier.objective(x).error if certifier.available else 0.0 for x in points]
            accepted = (self.tol or 0.0) * np.atleast_1d(unit(state.fun, self.usual(state)))
            small = np.square(loop.norm() + rounding) / 2.0 <= accepted * np.array(curvature)
            meaningful: np.ndarray = small & (np.array(errors) <= accepted)
        if len(points) == 1 and not meaningful[0]:
            self.has_no_minimizer(points[0])
        return meaningful
