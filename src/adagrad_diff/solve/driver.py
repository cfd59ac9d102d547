"""Watching the iteration from outside: when to stop, and what to record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.tolerance import NOTHING, unit
from ..rules import Rule
from .history import History, Record
from .state import State
from .status import RUNNING, Interrupt, Status

if TYPE_CHECKING:
    from ..certificates import Certificate, Certifier
    from .keeping import Keeper
    from .tries import Tries

LATER_CURVATURE = (
    1.3  # by which factor a run grows until the meaning of a small subgradient is looked at again
)
SELDOM = 16  # iterations between two looks at how much gradients have changed
DIVERGENCE = 1e30


class Watch:
    """Follows a run and decides when it ends."""

    def __init__(
        self,
        max_iter: int,
        deadline: float,
        tol: float | None,
        callback: Callable[..., Any] | None,
        every: int,
        state: State,
        norms: bool = True,
        certifier: Certifier | None = None,
        interrupt: Interrupt | None = None,
        show: Callable[[State], None] | None = None,
        tries: Tries | None = None,
        keeper: Keeper | None = None,
        passes: Callable[..., Any] | None = None,
        point: Callable[[State], np.ndarray] | None = None,
        curvature: Callable[[State], Any] | None = None,
    ):
        self.left, self.deadline, self.tol, self.callback, self.every = (
            max_iter,
            deadline,
            tol,
            callback,
            every,
        )
        self.certifier, self.interrupt, self.tries = certifier, interrupt or Interrupt(), tries
        self.show = show  # makes a state what a caller may see, if the source of states does not do that by itself
        self.point = point or (lambda state: state.x)  # what would be returned if the run ended now
        self.curvature = curvature  # the least one at the iterate, which says what a small subgradient means; None: whatever it is
        self.no_minimizer = False  # whether the objective keeps decreasing along x
        self._next_curvature = 0.0  # the iteration at which it is computed again
        self.norms = norms  # whether the record has the subgradient norms, which take a pass over the whole state
        self.n, self.begin, self.shape = int(np.max(state.n)), perf_counter(), np.shape(state.f)
        self.record = Record(self.shape)
        self.passes = passes or (
            lambda n, memory: n + 1
        )  # over the data, that n iterations have taken
        self.keeper = keeper  # writes checkpoints, when it is time
        if keeper is not None:
            self.begin, self.left = self.begin - keeper.seconds, keeper.left(state, max_iter)
            self.record = Record(self.shape, keeper.kept.history if keeper.kept else None)
        self._seen: tuple[Any, Any] | None = (
            None  # the subgradient norm and mean step at the current iterate, once computed
        )

    def run(
        self, iterations: Callable[[Rule, State], Iterator[State]], rule: Rule, state: State
    ) -> Any:
        """Run to the end. Returns the status, of each trajectory if there are several.

        Trajectories that have ended leave: the others go on in smaller arrays and are written back in the end.
        """
        if not state.batched:
            return self._follow(iterations(rule, state), state)
        status = self.codes = (
            np.full(state.f.shape, RUNNING)
            if self.keeper is None
            else self.keeper.codes(state.f.shape)
        )
        self.full, self.columns = state, np.flatnonzero(status == RUNNING)
        part = state if self.columns.size == status.size else state.select(self.columns)
        while self.columns.size:
            codes = self._follow(iterations(rule.select(self.columns), part), part)
            part.committing = True  # until they are written back
            status[self.columns] = codes
            if part is not state:
                state.put(self.columns, part)
            self.columns = self.columns[codes == RUNNING]
            part.committing = False
            part = state.select(self.columns)
        return status

    def _follow(self, iterations: Iterator[State], state: State) -> Any:
        """Draw states until a trajectory ends; the status of each, RUNNING for those that have not ended."""
        self.interrupt.held = lambda: (
            state.committing or (state.trajectories is not None and state.trajectories.committing)
        )
        status = self._verdict(state, Status.MAX_ITER if self.left == 0 else RUNNING)
        try:
            if self.interrupt.requested:
                status = _end(status)
            while np.all(status == RUNNING) if state.batched else status == RUNNING:
                next(iterations)
                state.committing = False
                status = self._look(state)
                if self.interrupt.requested:
                    status = _end(status)
                if (
                    self.keeper is not None
                    and perf_counter() >= self.keeper.due
                    and np.all(status == RUNNING)
                ):
                    codes = self.codes if state.batched else RUNNING
                    self.keeper.keep(self._shown(state), codes, self.history(), self.seconds)
            if state.failed is not True and state.step is not None and np.any(np.isnan(state.norm)):
                state.diagnose()
        except KeyboardInterrupt:
            self.interrupt.requested = True
            status = _end(status)
        return status

    def _look(self, state: State) -> Any:
        """One more iteration is complete: record it, and see what it means."""
        if state.failed is True:  # it is not: x is still the one before
            return Status.NOT_FINITE
        self.left -= 1
        self.n += 1
        self._seen = None
        if self.every and self.n % self.every == 0:
            self._record(state)
        if self.certifier is not None:
            self.certifier.follow(state)
        if self.tries is not None and state.turning and self.tries.follow(state):
            return Status.CONVERGED
        stop = RUNNING  # what ends all trajectories alike
        if self.callback is not None and self._called_off(state):
            stop = Status.CALLBACK
        elif self.left == 0:
            stop = Status.MAX_ITER
        elif perf_counter() > self.deadline:
            stop = Status.MAX_TIME
        if self.certifier is not None and stop != RUNNING and state.trajectories is None:
            self.certifier.look_closely(state)
        if self.tol is not None and self._by_subgradient:
            self._diagnose(state)
        return self._verdict(state, stop)

    @property
    def _by_subgradient(self) -> bool:
        """Whether the subgradient decides, because no duality gap does."""
        return self.certifier is None or self.certifier.hopeless

    def _verdict(self, state: State, stop: int) -> Any:
        """The status of each trajectory: `stop`, unless it has an end of its own."""
        reached, stalled = (False, False) if self.tol is None else self._judge(state, self.tol)
        if not state.batched:
            if state.failed:
                return Status.NOT_FINITE
            if self.no_minimizer or abs(state.f) / DIVERGENCE > 1.0 + abs(state.f_first):
                return Status.DIVERGED
            return Status.CONVERGED if reached else Status.STALLED if stalled else stop
        status = np.full(state.f.shape, int(stop))
        np.copyto(status, int(Status.CONVERGED), where=reached)
        status[np.abs(state.f) / DIVERGENCE > 1.0 + np.abs(state.f_first)] = (
            Status.DIVERGED
        )  # a product might overflow
        status[state.failed] = Status.NOT_FINITE
        return status

    def _judge(self, state: State, tol: float) -> tuple[Any, Any]:
        """Whether the tolerance is reached, and whether the run is stalled."""
        reached = self._promising(state, tol)
        if np.any(reached):
            reached = self.certified(state) & reached
            if not np.all(reached == self._promising(state, tol)):
                self.certifier.doubt()  # type: ignore[union-attr]
        if self._by_subgradient:
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # the sizes of gradients may be infinite
                small = state.norm <= tol * state.g_first
                if self.n % SELDOM == 0:  # if the first gradient was next to nothing
                    small |= state.norm <= tol * NOTHING * state.change()
            small &= state.norm < np.inf
            if self.curvature is not None and np.any(small):
                small = small & self._meaningful(state, tol)
            reached |= small
        return reached, state.gain < np.inf and state.gain <= tol * self._unit(state)

    def _promising(self, state: State, tol: float) -> Any:
        """Whether the tolerance seems to be reached by the duality gap, as far as the computed objective tells."""
        if self.certifier is None or not self.certifier.known:
            return False
        gap = self.certifier.gap(state.fun)
        with np.errstate(over="ignore", invalid="ignore"):  # so may the objective
            return (gap <= tol * self._unit(state)) & (gap < np.inf)

    def _meaningful(self, state: State, tol: float) -> Any:
        """Whether the subgradient is small because the objective is near its optimum, not because curvature is tiny."""
        assert self.curvature is not None
        if self.n < self._next_curvature:
            return False
        self._next_curvature = LATER_CURVATURE * self.n
        with np.errstate(all="ignore"):
            norm = state.norm + state.subgradient_rounding()
            meaningful = np.square(norm) / 2.0 <= tol * self._unit(state) * self.curvature(state)
        certifier = self.certifier
        known = certifier is not None and certifier.known
        errors = [certifier.objective(x).error for x in self._points(state)] if known else 0.0  # type: ignore
        meaningful &= np.reshape(errors, np.shape(meaningful)) <= tol * self._unit(state)
        if not (state.batched or meaningful) and self.certifier is not None:
            self.no_minimizer = self.certifier.has_no_minimizer(self.point(state))
        return meaningful

    def certificates(self, state: State) -> list[Certificate]:
        """What is proven about the point of each trajectory; nothing without a dual function."""
        if self.certifier is None or not self.certifier.known:
            return []
        return [self.certifier.certificate(x) for x in self._points(state)]

    def _points(self, state: State) -> list[np.ndarray]:
        """The point of each trajectory."""
        x = self.point(state)
        return [x[..., k] for k in range(x.shape[-1])] if state.batched else [x]

    def certified(self, state: State, found: list[Certificate] | None = None) -> Any:
        """Whether the tolerance is reached by the duality gap at exactly the point that would be returned."""
        found = self.certificates(state) if found is None else found
        if self.tol is None or not found:
            return np.zeros(np.shape(state.f), bool)[()]
        usual = np.atleast_1d(self._usual(state))
        reached = [
            c.gap <= self.tol * unit(c.fun, u) < np.inf for c, u in zip(found, usual, strict=True)
        ]
        return np.array(reached) if state.batched else reached[0]

    def holds(self, state: State, codes: Any) -> bool:
        """Whether the point of a run that is said to have converged is as good as that."""
        converged = np.equal(codes, Status.CONVERGED)
        if self.tol is None or not np.any(converged):
            return not np.any(converged)
        small = self._by_subgradient & (
            state.norm <= self.tol * np.maximum(state.g_first, NOTHING * state.change())
        )
        return bool(np.all(~converged | self.certified(state) | small))

    def _unit(self, state: State) -> Any:
        """What gaps are measured in.

        The size at the start is that only if no other is known: a bad start must not loosen the tolerance.
        """
        return unit(state.fun, self._usual(state))

    def _usual(self, state: State) -> Any:
        usual = self.certifier.scale if self.certifier is not None else 0.0
        return np.full(np.shape(state.f), usual)[()] if usual else abs(state.f_first)

    def _diagnose(self, state: State) -> tuple[Any, Any]:
        if self._seen is None:
            self._seen = (
                state.diagnose()
                if self.norms
                else (np.nan, state.step.mean(axis=0, dtype=np.float64))
            )
        return self._seen

    def _called_off(self, state: State) -> bool:
        from scipy.optimize import OptimizeResult

        norm, mean_step = self._diagnose(state)
        if state.batched:  # the callback sees all trajectories, also those that have ended
            norm, mean_step = self._widen(norm), self._widen(mean_step)
        state = self._shown(state)
        now = OptimizeResult(
            x=state.x.copy(),
            fun=state.fun,
            fun_best=np.copy(state.fun_best)[()],
            nit=np.copy(state.n)[()],
        )
        now.update(subgradient_norm=norm, mean_step=mean_step, state=state)
        try:
            self.callback(now)  # type: ignore[misc]
        except StopIteration:
            return True
        return False

    def _shown(self, state: State) -> State:
        """The state of all trajectories, also of those that have ended, as somebody may see and keep it."""
        if state.batched and state is not self.full:
            self.full.put(self.columns, state)
            state = self.full
        if self.show is not None:
            self.show(state)
        for watcher in (self.certifier, self.tries):
            state.notes |= watcher.memory() if watcher is not None else {}
        return state

    def _record(self, state: State) -> None:
        norm, mean_step = self._diagnose(state)
        if state.trajectories is not None:
            row: tuple[Any, ...] = (
                float(state.trajectories.fun[state.trajectories.ahead()]),
                mean_step,
                norm,
            )
        else:
            row = (state.fun, mean_step, norm)
        if state.batched:
            row = tuple(self._widen(np.where(state.failed, np.nan, value)) for value in row)
        memory = (state.trajectories or state).memory
        self.record.add(self.n, *row, self.seconds, float(np.max(self.passes(state.n, memory))))

    def _widen(self, values: np.ndarray) -> np.ndarray:
        """Values of the trajectories that are still running among NaN for the others."""
        full = np.full(self.shape, np.nan)
        full[self.columns] = values
        return full

    @property
    def seconds(self) -> float:
        """Since the run began; with a checkpoint, of all calls together."""
        return perf_counter() - self.begin

    def history(self) -> History:
        """What was recorded, as arrays."""
        return self.record.history()


def _end(status: Any) -> Any:
    """INTERRUPTED for whatever is still running."""
    code = Status.INTERRUPTED
    return (
        np.where(status == RUNNING, int(code), status)
        if np.ndim(status)
        else (code if status == RUNNING else status)
    )
