"""The duality gap as a stopping criterion: the certifier of `certificates` behind three methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.tolerance import unit
from ..losses import Loss, Minibatch
from ..penalties import Penalty

if TYPE_CHECKING:
    from .loop import Run


class GapCriterion:
    """Watches a run and knows a lower bound on F_star: `observe`, `check` and `gap`."""

    def __init__(self, loss: Loss, penalty: Penalty):
        from ..certificates import Certifier, dual_of

        dual = dual_of(loss.whole, penalty)
        self.certifier = Certifier(dual, 1, rounds=isinstance(loss, Minibatch))

    def observe(self, run: Run) -> None:
        """Take in the run's last iterate; now and then this improves the bound."""
        self.certifier.follow(_Observation(run))

    def check(self, run: Run) -> None:
        """Improve the bound as far as possible, at the last iterate."""
        self.certifier.look_closely(_Observation(run))

    def gap(self, fun: Any) -> Any:
        """Return an upper bound on F(x) - F_star, for values F(x)."""
        return self.certifier.gap(fun)

    def within(self, tol: float, fun: Any, first: Any) -> Any:
        """Return whether gaps are at most tol |F(x)|, or tol times a millionth of the usual |F|.

        That is the mean loss of constant predictions or, only if it is not known, |f(x^1)|: a bad start
        must not loosen the tolerance.
        """
        if not self.certifier.known:
            return False
        gap = self.gap(fun)
        with np.errstate(over="ignore", invalid="ignore"):  # the objective may be infinite
            return (gap <= tol * unit(fun, self.certifier.scale or first)) & (gap < np.inf)

    @property
    def hopeless(self) -> bool:
        """Whether no dual point is known, so that the subgradient decides."""
        return self.certifier.hopeless

    def memory(self) -> dict[str, np.ndarray]:
        """Return what it takes to resume."""
        return self.certifier.memory()

    def resume(self, memory: dict[str, np.ndarray]) -> None:
        """Continue from what `memory` returned."""
        self.certifier.remember(memory)


class _Observation:
    """A run as the certifier sees it."""

    trajectories, turning = None, False  # these concern runs without a given step size

    def __init__(self, run: Run):
        self._run, self._s = run, run.progress.iterate
        self.batched = run.several

    x = property(lambda self: self._run.problem.for_caller(self._s.x))
    g = property(lambda self: self._run.problem.for_caller(self._s.g))

    @property
    def x_best(self) -> Any:
        best = self._run.progress.x_best
        return None if best is None else self._run.problem.for_caller(best)

    @property
    def fun(self) -> Any:
        return self._s.f + self._s.phi

    def ahead(self) -> int:
        """Return the trajectory with the smallest objective of those that have not failed."""
        s = self._s
        return int(np.argmin(np.where(self._run.progress.failed, np.inf, s.f + s.phi)))

    @property
    def oracle(self) -> Any:
        return self._run.problem.oracle_at(self._s.x)

    def oracle_at_x(self) -> Any:
        return self.oracle
