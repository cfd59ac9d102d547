"""The duality gap as a stopping criterion: the certifier of `certificates` behind three methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.tolerance import unit
from ..losses import Loss, Minibatch
from ..penalties import Penalty
from .svrg import WARM_UP_EPOCHS

if TYPE_CHECKING:
    from ..certificates import Certificate
    from .run import Run
    from .state import State

PORTFOLIO_GRADIENTS = 3  # of an iteration after the first stage
CURVATURE_PERIOD_GROWTH = 1.3  # factor by which a run grows until the curvature is computed again


class GapCriterion:
    """Watches a run and knows a lower bound on F_star: `observe`, `check` and `certificates`."""

    def __init__(self, loss: Loss, penalty: Penalty, tol: float | None, trajectories: int = 1):
        """`trajectories` is the number of gradients that an iteration takes."""
        from ..certificates import Certifier, dual_of

        dual, batches = dual_of(loss.whole, penalty), isinstance(loss, Minibatch)
        self.certifier = Certifier(dual, trajectories, batches)
        self.certifier.accuracy = tol or 0.0
        self._next_curvature = 0.0  # the iteration at which the curvature is computed again
        self.no_minimizer = False  # whether the objective keeps decreasing along x

    def start(self, run: Run, state: State | None) -> None:
        """Prepare for a run, which continues from a state if there is one."""
        if state is not None:
            self.certifier.remember(state.notes, state.x)
        run.notes = self.certifier.memory

    def observe(self, run: Run) -> None:
        """Take in the run's last iterate; now and then this improves the bound."""
        self.certifier.follow(Observation(run))

    def check(self, run: Run) -> None:
        """Improve the bound as far as possible, at the last iterate."""
        self.certifier.look_closely(Observation(run))

    def certificates(self, points: list[np.ndarray]) -> list[Certificate]:
        """Return what is proven about each point; nothing without a dual function."""
        return [self.certifier.certificate(x) for x in points] if self.certifier.known else []

    def within(self, tol: float, points: list[np.ndarray], usual: Any) -> Any:
        """Return at which points the gap is at most tol |F(x)|, or tol times a millionth of the usual size."""
        found, usual = self.certificates(points), np.broadcast_to(usual, len(points))
        reached = [
            c.gap <= tol * unit(c.fun, float(u)) < np.inf
            for c, u in zip(found, usual, strict=False)
        ]
        return np.array(reached) if found else np.zeros(len(points), bool)

    def reached(self, tol: float, fun: Any, points: list[np.ndarray], usual: Any) -> Any:
        """Return the same for a run, whose own objectives `fun` promise it somewhere."""
        promising = np.atleast_1d(self.promises(tol, fun, usual))
        reached = promising & self.within(tol, points, usual)
        if not np.array_equal(reached, np.atleast_1d(self.promises(tol, fun, usual))):
            self.certifier.doubt()
        return reached

    def promises(self, tol: float, fun: Any, usual: Any) -> Any:
        """Return where the tolerance seems to be reached, as far as the run's own objectives tell."""
        if not self.certifier.known:
            return False
        gap = self.certifier.gap(fun)
        return (gap <= tol * unit(fun, usual)) & (gap < np.inf)

    def meaningful(self, tol: float, n: int, fun: Any, norm: Any, run: Run, usual: Any) -> Any:
        """Return whether subgradients of this norm (with its rounding) say that F(x) is near F_star.

        They do not where the curvature of the loss is tiny. This is looked at now and then.
        """
        points = run.points()
        if n < self._next_curvature:
            return np.zeros(len(points), bool)
        self._next_curvature = CURVATURE_PERIOD_GROWTH * n
        curvature = run.least_curvatures()
        known = self.certifier.known
        errors = np.array([self.certifier.objective(x).error if known else 0.0 for x in points])
        with np.errstate(all="ignore"):
            accepted = tol * np.atleast_1d(unit(fun, usual))
            meaningful = (np.square(norm) / 2.0 <= accepted * curvature) & (errors <= accepted)
        if len(points) == 1 and not meaningful[0]:
            self.no_minimizer = self.certifier.has_no_minimizer(points[0])
        return meaningful

    @property
    def hopeless(self) -> bool:
        """Whether no dual point is known, so that the subgradient decides."""
        return self.certifier.hopeless

    def usual(self, first: Any) -> Any:
        """Return the usual size of objectives: of linear models that of constant predictions, else |f(x^1)|.

        The size at the start is used only if no other is known: a bad start must not loosen the tolerance.
        """
        return self.certifier.scale or np.abs(first)


class Observation:
    """A run, or the trajectories of a portfolio, as the certifier sees it."""

    def __init__(self, run: Any, turning: bool = False):
        self._run, self._s, self.turning = run, run.progress.iterate, turning
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


class PortfolioGap(GapCriterion):
    """The duality gap of a portfolio, whose trajectories run in standardized coordinates."""

    def __init__(self, loss: Loss, penalty: Penalty, tol: float | None):
        super().__init__(loss, penalty, tol, PORTFOLIO_GRADIENTS)

    def start(self, run: Any, state: State | None) -> None:
        """Prepare for a run, which may have begun earlier."""
        certifier = self.certifier
        if certifier.known:
            certifier.back = lambda x: run.coordinates.back(x.reshape(run.problem.shape))
            if run.search.warm_up:
                certifier.next = WARM_UP_EPOCHS  # until then `Search.stage_over` says when
        super().start(run, state)

    def observe(self, run: Any) -> None:
        self.certifier.follow(Observation(run.search, run.search.stage_over))

    def check(self, run: Any) -> None:
        """Do nothing: the last evaluation is at the answer, in `settle`."""

    def settle(self, run: Any) -> None:
        """Improve the bound as far as possible at the answer of a run."""
        dual = self.certifier.dual
        if self.certifier.known:
            x, _, g, _ = run.answer
            r = None if dual.kinked else dual.residuals(run.problem.oracle_at(x), None)
            like = run.problem.for_caller
            self.certifier.finish(like(x), like(g), r)
