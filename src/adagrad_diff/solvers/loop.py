"""The loop around every solver: when a run ends, what is recorded, and what an interrupt leaves.

An iteration replaces the run's `progress` as a whole, so Ctrl-C loses at most one iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import inf, nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.tolerance import NOTHING, unit
from .gap import GapCriterion
from .result import RUNNING, UNFINISHED, Status
from .run import Run

if TYPE_CHECKING:
    from .polishing import PolishingSchedule

ACCUMULATION_PERIOD = 16  # iterations between two looks at how much gradients have changed


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
        polish: PolishingSchedule | None = None,
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
        self.save, self.cancelled, self.polish = save, cancelled, polish
        self.codes = np.full(np.size(run.f_first), RUNNING) if codes is None else codes
        self.n, self.begin = (
            int(np.max(run.progress.iterate.n)),
            perf_counter() if begin is None else begin,
        )
        self.record = Record(np.shape(run.f_first), history)
        self.interrupted, self.errors = (
            False,
            np.geterr(),
        )  # the caller's way to be warned of overflows

    def iterate(self) -> None:
        """Run to the end; the status codes are in `codes`."""
        run = self.run
        try:
            if not np.any(self.codes == RUNNING):
                return
            if np.any(self.codes != RUNNING):  # some had ended before the run was resumed
                run.end(self.codes != RUNNING)
            if self.polish is not None and self.polish.before_iterations():
                self.codes[:] = Status.CONVERGED
                return
            with np.errstate(all="ignore"):  # what overflows is seen in f, g and phi
                over = self._judge(RUNNING if self.left else Status.MAX_ITER)
                while not over:
                    run.advance()
                    self._count()
                    over = self._judge(self._look())
                    if self.save is not None and not over:
                        self.save(self)
                if self.polish is not None and self.codes[0] in UNFINISHED and self.polish.at_end():
                    self.codes[:] = Status.CONVERGED
        except KeyboardInterrupt:
            self.interrupted = True
            if (
                np.max(run.progress.iterate.n) > self.n
            ):  # Ctrl-C came between an iteration and its record
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
        if self.polish is not None and self.polish.after_iteration():
            stop = Status.CONVERGED
        elif self.callback is not None and self.callback(self):
            stop = Status.CALLBACK
        elif self.left == 0:
            stop = Status.MAX_ITER
        elif perf_counter() > self.deadline or (self.cancelled is not None and self.cancelled()):
            stop = Status.MAX_TIME
        if self.gap is not None and stop not in (RUNNING, Status.CONVERGED):
            self.gap.check(self.run)
        return stop

    def _judge(self, stop: int) -> bool:
        """End trajectories that have converged or failed, and all if `stop` says so. Return if none is left."""
        run, s = self.run, self.run.progress.iterate
        away, failed = abs(s.f) > run.active(run.limit), run.progress.failed
        reached = None if self.tol is None or stop == Status.CONVERGED else self._reached(self.tol)
        if stop == RUNNING and run.gain < inf and self.tol is not None:
            usual = 0.0 if self.gap is None else self.gap.usual(run.f_first)
            if run.gain <= self.tol * unit(s.f + s.phi, usual or np.abs(run.f_first)):
                stop = Status.STALLED
        if stop == RUNNING and reached is None and not _any(away) and not _any(failed):
            return False
        codes = np.full(len(run.columns), int(stop))
        if reached is not None:
            codes[reached] = Status.CONVERGED
        codes[away | (self.gap is not None and self.gap.no_minimizer)] = Status.DIVERGED
        codes[failed] = Status.NOT_FINITE
        ends = codes != RUNNING
        if ends.any():
            run.subgradient_norm()
            self.codes[run.columns] = codes
            if not ends.all():
                run.end(ends)
        return bool(ends.all())

    def _reached(self, tol: float) -> np.ndarray | None:
        """Return which trajectories are within the tolerance, by the gap or by a subgradient; None if none."""
        run, gap, s = self.run, self.gap, self.run.progress.iterate
        reached, usual, fun = None, 0.0, s.f + s.phi
        if gap is not None:
            usual = run.active(gap.usual(run.f_first))
            if _any(gap.promises(tol, fun, usual)):
                reached = gap.reached(tol, fun, run.points(), usual)
        if gap is None or gap.hopeless:
            small = self._small_subgradient(tol, self.n % ACCUMULATION_PERIOD == 0)
            if _any(small):
                small = np.atleast_1d(small)
                if gap is not None:
                    norm = run.progress.norm + run.subgradient_rounding()
                    small = small & gap.meaningful(tol, self.n, fun, norm, run, usual)
                reached = small if reached is None else reached | small
        return reached

    def _small_subgradient(self, tol: float, changes: bool) -> Any:
        """Return where the subgradient is small relative to the first gradient.

        With `changes`, also where it is next to nothing relative to the sum of all that gradients have
        changed by: the first one may vanish.
        """
        run = self.run
        norm, g_first = run.subgradient_norm(), run.active(run.g_first)
        with np.errstate(all="ignore"):  # gradients may be infinite
            small = norm <= tol * g_first
            if changes:
                small = small | (norm <= tol * NOTHING * run.gradient_change())
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
        run, failed = self.run, self.run.progress.failed
        if failed is True:  # the only trajectory has not moved
            return
        row = run.row(self.norms)
        if run.several:
            row = tuple(self._widen(np.where(failed, nan, values)) for values in row)  # type: ignore[assignment]
        self.record.add(self.n, *row, self.seconds, run.passes())

    def _widen(self, values: np.ndarray) -> np.ndarray:
        """Return values of the trajectories that run among NaN for the others."""
        full = np.full(len(self.codes), nan)
        full[self.run.columns] = values
        return full

    @property
    def seconds(self) -> float:
        """Since the run began; with a checkpoint, of all calls together."""
        return perf_counter() - self.begin


def _any(values: Any) -> bool:
    """Return whether a truth value, or one of several, is true."""
    return bool(values.any()) if isinstance(values, np.ndarray) else bool(values)


@dataclass(repr=False)
class History:
    """What was recorded, one entry per recorded iteration; with trajectories, (entries, B), NaN after one has ended."""

    iteration: np.ndarray  # n, counted from the very first start
    objective: np.ndarray  # F(x^{n+1})
    mean_step: np.ndarray  # mean over coordinates of eta / w^n
    subgradient_norm: np.ndarray  # ||u^{n+1}||
    time: (
        np.ndarray
    )  # seconds since this call began; with a checkpoint, of all the calls that have worked on it
    passes: np.ndarray  # over the data: one for each gradient, of all trajectories at once; with minibatches, a part of one

    def __repr__(self) -> str:
        if not len(self.iteration):
            return "History(nothing recorded)"
        return f"History({len(self.iteration)} entries, iterations {self.iteration[0]} to {self.iteration[-1]})"


class Record:
    """The history of a run as it grows. `shape` is that of the trajectories, () without."""

    def __init__(self, shape: tuple[int, ...], past: History | None = None):
        self.shape, self.rows = shape, list[tuple[Any, ...]]()
        self._past = past  # what is packed already: a long record is not packed anew each time somebody looks at it

    def add(self, *row: Any) -> None:
        """One more row: iteration, objective, mean step, subgradient norm, time, passes."""
        self.rows.append(row)

    def history(self) -> History:
        """All of it, as arrays."""
        if self.rows or self._past is None:
            columns = list(zip(*self.rows, strict=True)) or [()] * 6
            shapes = [(), self.shape, self.shape, self.shape, (), ()]
            arrays = [
                np.array(c, np.float64).reshape(-1, *s)
                for c, s in zip(columns, shapes, strict=True)
            ]
            arrays[0] = arrays[0].astype(np.int64)
            if self._past is not None:
                pairs = zip(
                    (getattr(self._past, field.name) for field in fields(History)),
                    arrays,
                    strict=True,
                )
                arrays = [np.concatenate(pair) for pair in pairs]
            self._past = History(*arrays)
            self.rows.clear()
        return self._past
