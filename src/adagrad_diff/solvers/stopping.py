"""When a run has converged: by a small subgradient, or by the duality gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..duality.tolerance import NOTHING, unit
from ..losses import Loss
from ..penalties import Penalty
from .proximal_gradient import double

if TYPE_CHECKING:
    from ..duality import Certificate
    from .loop import Loop

CHECK_GROWTH = 1.3  # factor by which a run grows between two evaluations of the duality gap
ACCUMULATION_PERIOD = 16  # iterations between two looks at how much gradients have changed


class SubgradientCriterion:
    """Stop when ||u|| <= tol ||g^1||, u a subgradient of F at x.

    ||g^1|| may vanish. Where the rule has accumulated squares of gradients or of their differences,
    ||g^1|| counts as at least a millionth of the root of their sum.
    """

    bounds = False  # whether the criterion knows lower bounds on F_star
    no_minimizer = False  # whether the objective is known to decrease forever

    def __init__(self, tol: float | None):
        self.tol = tol

    dual_point: np.ndarray | None = None  # that of the best bound

    def certificates(self, points: list[np.ndarray]) -> list[Certificate]:
        """Return what is proven about each point: nothing."""
        return []

    def recall(self, point: np.ndarray, x: np.ndarray) -> None:
        """Try the dual point of a run that had ended at x."""

    def observe(self, loop: Loop) -> None:
        """Take note of an iterate."""

    def usual(self, first: Any) -> Any:
        """Return the usual size of objectives: |f(x^1)|."""
        return np.abs(first)

    def reached(self, loop: Loop, last: bool = False) -> Any:
        """Return which trajectories have converged; `last` means that the run ends here anyway."""
        if self.tol is None:
            return False
        state, norm = loop.state, loop.norm()
        with np.errstate(all="ignore"):  # gradients may be infinite
            small = norm <= self.tol * state.g_first
            total = loop.solver.accumulated(state.iterate)
            if total is not None and (last or loop.n % ACCUMULATION_PERIOD == 0):
                change = np.sqrt(np.reshape(total, (-1, *np.shape(state.f))).sum(axis=0))
                small = small | (norm <= self.tol * NOTHING * change)
        return small & (norm < np.inf)


class GapCriterion(SubgradientCriterion):
    """Stop when the duality gap is at most tol |F(x)|; see `adagrad_diff.duality`.

    If no dual point is found, a small subgradient is accepted where the curvature of the loss shows
    that the objective is near its optimum. Both are evaluated at iterations 1.3^k, at the end, and
    when the solver suggests it.
    """

    bounds = True

    def __init__(self, loss: Loss, penalty: Penalty, tol: float | None, gradients: int = 1):
        """`gradients` is the number of gradients that an iteration takes."""
        from ..duality import Certifier, dual_of

        super().__init__(tol)
        self.certifier = Certifier(dual_of(loss.whole, penalty), gradients)
        self.certifier.accuracy = tol or 0.0
        self.next_check = 1

    def observe(self, loop: Loop) -> None:
        self.certifier.observe(loop.oracle)

    def reached(self, loop: Loop, last: bool = False) -> Any:
        suggested = loop.solver.suggests_check(loop.state.iterate)
        if not (last or suggested or loop.n >= self.next_check):
            return False
        self.next_check = int(CHECK_GROWTH * loop.n) + 1
        if loop.n:
            self._improve_bound(loop, last)
        if suggested:
            self.certifier.restart()
        if self.tol is None:
            return False
        fun, points = loop.state.fun, loop.points()
        usual = self.usual(loop.state.f_first)
        reached = np.zeros(len(points), bool)
        if np.any(self.certifier.gap(fun) <= self.tol * unit(fun, usual)):
            reached = self.within(self.tol, points, usual)
        if self.certifier.hopeless and not reached.all():
            small = np.atleast_1d(super().reached(loop, last=True))
            if small.any():
                reached |= small & self._meaningful(loop, points, usual)
        return reached

    def _improve_bound(self, loop: Loop, last: bool) -> None:
        """Try the dual points that belong to the trajectory with the smallest objective."""
        certifier, layout, state = self.certifier, loop.problem.layout, loop.state
        if not certifier.known:
            return
        r = certifier.dual.residuals(*loop.oracle())
        best = state.iterate.x if state.best is None else state.best
        x, g, best = (
            a[:, loop.leading()] if state.batched else a
            for a in (state.iterate.x, state.iterate.g, best)
        )
        certifier.check(layout.back(x), layout.gradient(g), r, layout.back(best), last)

    def improve_at(self, x: np.ndarray, g: np.ndarray, oracle: Any) -> None:
        """Improve the bound at the answer of a run, the last point that the oracle has evaluated."""
        certifier = self.certifier
        if certifier.known:
            r = None if certifier.dual.kinked else certifier.dual.residuals(oracle, None)
            certifier.check(x, g, r, x, True)

    @property
    def hopeless(self) -> bool:
        """Whether no dual point is known, so that the subgradient decides."""
        return self.certifier.hopeless

    @property
    def dual_point(self) -> np.ndarray | None:  # type: ignore[override]
        return self.certifier.point

    def recall(self, point: np.ndarray, x: np.ndarray) -> None:
        self.certifier.recall(point, x)

    def objective(self, x: np.ndarray) -> float:
        """Return F(x) in double precision or better."""
        return self.certifier.objective(x).value

    def has_no_minimizer(self, x: np.ndarray) -> bool:
        """Return, and remember, whether the objective keeps decreasing along x."""
        self.no_minimizer = self.certifier.has_no_minimizer(x)
        return self.no_minimizer

    def message(self, found: list[Certificate], fun: float) -> str:
        """Return what is proven about the best point."""
        return min(found, key=lambda c: c.fun).message if found else self.certifier.message(fun)

    def certificates(self, points: list[np.ndarray]) -> list[Certificate]:
        """Return what is proven about each point; nothing without a dual function."""
        return [self.certifier.certificate(x) for x in points] if self.certifier.known else []

    def within(self, tol: float, points: list[np.ndarray], usual: Any) -> np.ndarray:
        """Return at which points the gap is at most tol |F(x)|, or tol times a millionth of `usual`."""
        found, usual = self.certificates(points), np.broadcast_to(usual, len(points))
        pairs = zip(found, usual.tolist(), strict=True) if found else ()
        reached = [c.gap <= tol * unit(c.fun, u) < np.inf for c, u in pairs]
        return np.array(reached) if found else np.zeros(len(points), bool)

    def usual(self, first: Any) -> Any:
        """Return the usual size of objectives: that of constant predictions, else |f(x^1)|.

        The size at the start is used only if no other is known: a bad start must not loosen tol.
        """
        return self.certifier.scale or np.abs(first)

    def _meaningful(self, loop: Loop, points: list[np.ndarray], usual: Any) -> np.ndarray:
        """Return whether the subgradients, with their rounding, say that F(x) is near F_star.

        They do not where the curvature of the loss is tiny.
        """
        from ..duality import least_curvature

        state, problem = loop.state, loop.problem
        scale = None if np.ndim(problem.scale) == 0 else problem.scale
        with np.errstate(all="ignore"):
            columns = state.iterate.x.reshape(problem.size, -1).T
            shaped = [np.ascontiguousarray(problem.layout.shaped(x)) for x in columns]
            curvature = [least_curvature(problem.loss.whole, x, scale) for x in shaped]
            sizes = problem.norm(double(state.iterate.x) / state.iterate.step)
            rounding = float(np.finfo(problem.dtype).eps) * (state.g_first + sizes)
            known = self.certifier.known
            errors = [self.certifier.objective(x).error if known else 0.0 for x in points]
            accepted = (self.tol or 0.0) * np.atleast_1d(unit(state.fun, usual))
            small = np.square(loop.norm() + rounding) / 2.0 <= accepted * np.array(curvature)
            meaningful: np.ndarray = small & (np.array(errors) <= accepted)
        if len(points) == 1 and not meaningful[0]:
            self.has_no_minimizer(points[0])
        return meaningful
