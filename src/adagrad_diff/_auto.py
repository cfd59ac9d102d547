r"""eta = "auto": no step size to choose.

A few trajectories race as columns of one matrix, in stages that double the length of the run. The first stage has eight etas
over seven decades. After every stage the best iterate so far is the ground for the next one, in which three trajectories run:

- the winner goes on as it is;
- two restart from the best iterate, with empty accumulators and eta = rho and rho / 5, where rho is how far (root mean square
  over coordinates) the best iterate has moved during the stage.

A restart forgets steps that were too large, which Algorithm 1 would remember for ever, and its eta shrinks with the distance
that is left: so the method is often ahead of the best constant eta. It costs about three gradients per iteration, which share
one pass over the data.

Coordinates are scaled by the sizes of the columns of A, and with an intercept columns are centered, both inside the products:
the data are neither copied nor, if sparse, filled.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _geometry
from ._driver import History, report
from ._minimize import iterations, start
from ._state import State
from ._status import Status, delayed_interrupt
from .losses import Loss
from .penalties import Penalty
from .rules import AdaGradDiff

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from .certificates import Certifier

ETAS = np.logspace(-5, 2, 8)  # of the first stage, in units of the typical size of a coordinate
FIRST = 16  # its iterations
RESTARTS = (1.0, 0.2)  # etas of the restarts, in units of the distance moved
MANY = 500_000  # predictions from which on the first stage saves memory: a third of the etas
LEAST = 512  # iterations before a run may count as stalled


class Auto:
    """A run without a step size: `run` makes it, and leaves the best iterate, its objective and the status."""

    def __init__(self, loss: Loss, x0: Any, penalty: Penalty, eps: float, blocks: Any):
        self.original, self.penalty = loss, penalty
        self.geometry = _geometry.of(loss, penalty, blocks)
        self.loss = self.geometry.loss
        self.options = {"eps": eps, "blocks": self.geometry.blocks, "scale": self.geometry.scale}
        self.etas = self.geometry.unit * (ETAS if loss.predictions < MANY else ETAS[1::3])
        first = start(loss, x0, penalty, AdaGradDiff(1.0, **self.options))
        if first.batched:
            raise ValueError(f"eta='auto' runs from one start, but x0 has {first.x.shape[-1]} trajectories. Give eta a number.")
        self.etas = _within(self.etas, first.x.dtype)
        x = self.geometry.forward(first.x)
        self.state = start(self.loss, np.repeat(x[..., None], len(self.etas), axis=-1), penalty, self.rule)
        self.n, self.evaluations = 0, len(self.etas)
        self.rows: list[tuple] = []  # of the history
        self.x, self.fun = x, float(self.state.fun[0])
        self.eta, self.status = float(self.etas[0]), Status.MAX_ITER

    @property
    def rule(self) -> AdaGradDiff:
        """The rule of the trajectories that run."""
        return AdaGradDiff(self.etas, **self.options)  # type: ignore[arg-type]

    def run(
        self,
        max_iter: int,
        deadline: float,
        tol: float | None,
        every: int,
        callback: Callable | None,
        certifier: Certifier | None,
    ) -> None:
        """Stages that double, until somebody says stop."""
        begin, past = perf_counter(), [self.fun]
        if certifier is not None and not certifier.known:
            certifier = None
        if certifier is not None:
            certifier.back = self.geometry.back
        with delayed_interrupt() as interrupt:
            length = FIRST
            while True:
                ground = self.x
                self.evaluations += len(self.etas) * min(length, max_iter - self.n)
                for state in islice(iterations(self.loss, self.penalty, self.rule, self.state), min(length, max_iter - self.n)):
                    self.n += 1
                    if every and self.n % every == 0:
                        self._record(state, begin)
                    status = self._look(state, deadline, tol, callback, certifier)
                    if status is not None or interrupt.requested:
                        self.status = Status.INTERRUPTED if status is None else status
                        break
                else:
                    status = Status.MAX_ITER if self.n >= max_iter else None
                self._best(self.state)
                if certifier is not None and self.n < max_iter:
                    certifier.look(self.state)
                if status is not None or interrupt.requested:
                    return
                past.append(self.fun)
                if tol is not None and self.n >= LEAST and past[-3] - self.fun <= tol * abs(self.fun):
                    self.status = Status.STALLED
                    return
                if certifier is not None:
                    certifier.restart()
                self._fork(float(np.sqrt(np.mean(self.geometry.unscaled(self.x - ground) ** 2))))
                length = self.n

    def _best(self, state: State) -> None:
        """Keep the best iterate of all."""
        fun = np.where(state.failed & ~np.isfinite(state.fun_best), np.inf, state.fun_best)
        best = int(np.argmin(fun))
        if fun[best] < self.fun:
            self.fun, self.x, self.eta = float(fun[best]), state.x_best[..., best].copy(), float(self.etas[best])

    def _look(self, state: State, deadline: float, tol: Any, callback: Any, certifier: Any) -> Status | None:
        """Whether this was the last iteration."""
        if callback is not None:
            from scipy.optimize import OptimizeResult

            self._best(state)
            try:
                callback(
                    OptimizeResult(x=self.geometry.back(self.x), fun=self.fun, fun_best=self.fun, nit=self.n, eta=self.eta)
                )
            except StopIteration:
                return Status.CALLBACK
        if perf_counter() > deadline:
            return Status.MAX_TIME
        if certifier is not None:
            certifier.follow(state, last=False)
            if tol is not None:
                fun = min(self.fun, state.fun_best.min())
                if fun - certifier.bound <= tol * abs(fun):
                    return Status.CONVERGED
        return None

    def _fork(self, moved: float) -> None:
        """The trajectories of the next stage: the winner of this one, and restarts from the best iterate."""
        state, count = self.state, 1 + len(RESTARTS)
        state.oracle = None  # its memory is needed again
        winner = int(np.argmin(np.where(state.failed, np.inf, state.fun_best)))
        eta = float(self.etas[winner])
        rho = moved if moved > 0 else 0.1 * eta  # nothing was gained: steps were too large
        self.etas = _within(np.array([eta, *(factor * rho for factor in RESTARTS)]), state.x.dtype)
        fresh = start(self.loss, np.repeat(self.x[..., None], count, axis=-1), self.penalty, self.rule)
        self.evaluations += 1
        for name in ("n", "x", "f", "phi", "g", "total"):
            getattr(fresh, name)[..., 0] = getattr(state, name)[..., winner]
        fresh.x_best, fresh.fun_best = fresh.x.copy(), fresh.fun  # a stage is judged by itself
        fresh.f_first = np.full(count, state.f_first[0])
        self.state = fresh

    def _record(self, state: State, begin: float) -> None:
        best = int(np.argmin(np.where(state.failed, np.inf, state.fun)))
        step = float(np.mean(state.step[..., best]))
        self.rows.append((self.n, float(state.fun[best]), step, np.nan, perf_counter() - begin))

    def history(self) -> History:
        """The best trajectory's objective and mean step, iteration by iteration."""
        columns = [np.array(column, np.float64) for column in zip(*self.rows, strict=True)] or [np.empty(0)] * 5
        return History(columns[0].astype(np.int64), *columns[1:])

    def report(self, tol: float | None, on_failure: str, certifier: Certifier | None) -> OptimizeResult:
        """The result: x is the best iterate, in the caller's coordinates, with a state to go on from with a constant eta."""
        rule = AdaGradDiff(self.eta, **self.options)
        state = start(self.original, self.geometry.back(self.x), self.penalty, rule)
        state.n, state.x_sum = self.n, max(self.n, 1) * state.x.astype(np.float64)
        enough = -1.0 if tol is None else tol * abs(state.fun)  # the gap that is asked for
        if certifier is not None and certifier.known and self.n:
            if certifier.gap(state.fun) > enough:
                r = None
                if not certifier.dual.kinked:  # then the mean of earlier ones will do
                    oracle = self.original.oracle(state.x)
                    oracle(state.x, np.empty_like(state.g))
                    r = certifier.dual.residuals(oracle, None)
                certifier.back = lambda x: x
                certifier.finish(state.x, state.g, r)
            if self.status != Status.INTERRUPTED and certifier.gap(state.fun) <= enough:
                self.status = Status.CONVERGED
        extra = {"eta": self.eta, "rule": rule, "nfev": self.evaluations}
        return report(state, self.status, tol, self.history(), on_failure, certifier, extra)


def _within(etas: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Step sizes that x, of this dtype, can move by."""
    limits = np.finfo(dtype)
    return np.clip(etas, float(limits.smallest_subnormal), float(limits.max))
