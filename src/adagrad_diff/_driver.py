"""Watching the iteration from outside: when to stop, what to record, what to report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ._state import State
from ._status import (
    BUDGETS,
    CERTIFIED,
    EXPLANATIONS,
    GAP_MISSED,
    TOLERANCE_MISSED,
    ConvergenceError,
    ConvergenceWarning,
    Status,
    delayed_interrupt,
)
from .rules import Rule

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from .certificates import Certifier

RUNNING = -1
DIVERGENCE = 1e30


@dataclass
class History:
    """What was recorded, one entry per recorded iteration; with trajectories, (entries, B), NaN after one has ended."""

    iteration: np.ndarray  # n, counted from the very first start
    objective: np.ndarray  # F(x^{n+1})
    mean_step: np.ndarray  # mean over coordinates of eta / w^n
    subgradient_norm: np.ndarray  # ||u^{n+1}||
    time: np.ndarray  # seconds since this call began


class Watch:
    """Follows a run and decides when it ends."""

    def __init__(
        self,
        max_iter: int,
        deadline: float,
        tol: float | None,
        callback: Callable | None,
        every: int,
        state: State,
        norms: bool = True,
        certifier: Certifier | None = None,
    ):
        self.left, self.deadline, self.tol, self.callback, self.every = max_iter, deadline, tol, callback, every
        self.certifier = certifier
        self.norms = norms  # whether the record has the subgradient norms, which take a pass over the whole state
        self.n, self.begin, self.shape = int(np.max(state.n)), perf_counter(), np.shape(state.f)
        self.rows: list[tuple] = []
        self._seen: Any = None  # the subgradient norm and mean step at the current iterate, once computed

    def run(self, iterations: Callable[[Rule, State], Iterator[State]], rule: Rule, state: State) -> Any:
        """Run to the end. Returns the status, of each trajectory if there are several.

        Trajectories that have ended leave: the others go on in smaller arrays and are written back in the end.
        """
        if not state.batched:
            return self._follow(iterations(rule, state), state)
        self.full, self.columns = state, np.arange(state.f.size)
        status, part = np.full(state.f.shape, RUNNING), state
        while self.columns.size:
            codes = self._follow(iterations(rule.select(self.columns), part), part)
            status[self.columns] = codes
            if part is not state:
                state.put(self.columns, part)
            self.columns = self.columns[codes == RUNNING]
            part = state.select(self.columns)
        return status

    def _follow(self, iterations: Iterator[State], state: State) -> Any:
        """Draw states until a trajectory ends; the status of each, RUNNING for those that have not ended."""
        status = self._verdict(state, Status.MAX_ITER if self.left == 0 else RUNNING)
        with delayed_interrupt() as interrupt:
            try:
                while np.all(status == RUNNING) if state.batched else status == RUNNING:
                    next(iterations)
                    status = self._look(state)
                    if interrupt.requested:
                        status = _end(status)
                if state.failed is not True and state.step is not None and np.any(np.isnan(state.norm)):
                    state.diagnose()
            except KeyboardInterrupt:
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
        stop = RUNNING  # what ends all trajectories alike
        if self.callback is not None and self._called_off(state):
            stop = Status.CALLBACK
        elif self.left == 0:
            stop = Status.MAX_ITER
        elif perf_counter() > self.deadline:
            stop = Status.MAX_TIME
        if self.certifier is not None:
            self.certifier.follow(state, last=stop != RUNNING)
        if self.tol is not None and not self._certified:
            self._diagnose(state)
        return self._verdict(state, stop)

    @property
    def _certified(self) -> bool:
        """Whether a duality gap decides, and not the subgradient."""
        return self.certifier is not None and self.certifier.known

    def _verdict(self, state: State, stop: int) -> Any:
        """The status of each trajectory: `stop`, unless it has an end of its own."""
        tol = -1.0 if self.tol is None else self.tol
        distance, unit = (state.norm, state.g_first) if not self._certified else self.certifier.relative(state)  # type: ignore[union-attr]
        if not state.batched:
            if state.failed:
                return Status.NOT_FINITE
            if abs(state.f) > DIVERGENCE * (1.0 + abs(state.f_first)):
                return Status.DIVERGED
            return Status.CONVERGED if distance <= tol * unit else stop
        status = np.where(distance <= tol * unit, int(Status.CONVERGED), int(stop))
        status[np.abs(state.f) > DIVERGENCE * (1.0 + np.abs(state.f_first))] = Status.DIVERGED
        status[state.failed] = Status.NOT_FINITE
        return status

    def _diagnose(self, state: State) -> tuple[Any, Any]:
        if self._seen is None:
            self._seen = state.diagnose() if self.norms else (np.nan, state.step.mean(axis=0, dtype=np.float64))
        return self._seen

    def _called_off(self, state: State) -> bool:
        from scipy.optimize import OptimizeResult

        norm, mean_step = self._diagnose(state)
        if state.batched:  # the callback sees all trajectories, also those that have ended
            norm, mean_step = self._widen(norm), self._widen(mean_step)
            if state is not self.full:
                self.full.put(self.columns, state)
            state = self.full
        now = OptimizeResult(x=state.x.copy(), fun=state.fun, fun_best=np.copy(state.fun_best)[()], nit=np.copy(state.n)[()])
        now.update(subgradient_norm=norm, mean_step=mean_step, state=state)
        try:
            self.callback(now)  # type: ignore[misc]
        except StopIteration:
            return True
        return False

    def _record(self, state: State) -> None:
        norm, mean_step = self._diagnose(state)
        row: tuple = (state.fun, mean_step, norm)
        if state.batched:
            row = tuple(self._widen(np.where(state.failed, np.nan, value)) for value in row)
        self.rows.append((self.n, *row, perf_counter() - self.begin))

    def _widen(self, values: np.ndarray) -> np.ndarray:
        """Values of the trajectories that are still running among NaN for the others."""
        full = np.full(self.shape, np.nan)
        full[self.columns] = values
        return full

    def history(self) -> History:
        """What was recorded, as arrays."""
        columns = list(zip(*self.rows, strict=True)) or [()] * 5
        shapes = [(), self.shape, self.shape, self.shape, ()]
        arrays = [np.array(c, np.float64).reshape(-1, *s) for c, s in zip(columns, shapes, strict=True)]
        return History(arrays[0].astype(np.int64), *arrays[1:])


def _end(status: Any) -> Any:
    """INTERRUPTED for whatever is still running."""
    code = Status.INTERRUPTED
    return np.where(status == RUNNING, int(code), status) if np.ndim(status) else (code if status == RUNNING else status)


def report(
    state: State,
    status: Any,
    tol: float | None,
    history: History,
    on_failure: str,
    certifier: Certifier | None = None,
    extra: dict[str, Any] | None = None,
) -> OptimizeResult:
    """The result of a run, and a warning or an error if it was not a success."""
    from scipy.optimize import OptimizeResult

    state.x_prev = state.g_prev = state.step = state.oracle = None  # only the run needed them
    codes = np.atleast_1d(status)
    broken = ~(np.isfinite(state.flat(state.g)) & np.isfinite(state.flat(state.x))).all(axis=0)
    codes = np.where(np.atleast_1d(broken), int(Status.NOT_FINITE), codes)
    good = (codes == Status.CONVERGED) | (np.isin(codes, BUDGETS) & (tol is None))
    if certifier is None or not np.isfinite(certifier.bound):  # there is nothing better to stop on
        good |= codes == Status.STALLED
    batched = state.batched
    result = OptimizeResult(
        x=state.x.copy(),
        fun=state.fun,
        jac=state.g.copy(),
        x_avg=state.x_avg,
        x_best=state.x_best.copy(),
        fun_best=state.fun_best,
        subgradient_norm=state.norm,
        nit=state.n,
        nfev=state.n + 1,
        status=codes if batched else int(codes[0]),
        success=good if batched else bool(good[0]),
        message=_message(codes, state, tol, certifier),
        history=history,
        state=state,
    )
    if certifier is not None:
        result.update(gap=certifier.gap(state.fun), bound=certifier.bound, dual_point=certifier.point)
    result.update(extra or {})
    alarming = ~good & ~np.isin(codes, (Status.CALLBACK, Status.INTERRUPTED))
    if alarming.any() and on_failure == "raise":
        raise ConvergenceError(result.message, result)
    if alarming.any() and on_failure == "warn":
        warnings.warn(result.message, ConvergenceWarning, stacklevel=3)
    return result


def _message(codes: np.ndarray, state: State, tol: float | None, certifier: Certifier | None) -> str:
    sentences, certified = [], certifier is not None and certifier.known
    for code in np.unique(codes):
        here = codes == code
        sentence = CERTIFIED if certified and code == Status.CONVERGED else EXPLANATIONS[Status(code)]
        if tol is not None and code in BUDGETS:
            sentence += GAP_MISSED if certified else TOLERANCE_MISSED
        n, u, first = (np.max(np.atleast_1d(value)[here]) for value in (state.n, state.norm, state.g_first))
        subject = f"{here.sum()} of {codes.size} trajectories: " if codes.size > 1 else ""
        norm = "" if np.isnan(u) else f", ||u|| = {u:.2e}"
        sentences.append(f"{subject}{sentence} (n = {n}{norm}, ||g^1|| = {first:.2e}).")
    if certifier is not None:
        sentences.append(certifier.message(np.min(state.fun)))
    return " ".join(sentences)
