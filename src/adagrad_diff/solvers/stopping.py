"""When a run has converged: by a small subgradient, or by the duality gap.

This is the only file that asks the certifier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..duality import NEGLIGIBLE_SHARE, unit
from .problem import double
from .state import State

if TYPE_CHECKING:
    from ..duality import Certificate, Certifier
    from .loop import Loop

CHECK_GROWTH = 1.3  # factor by which a run grows between two evaluations of the duality gap
ACCUMULATION_PERIOD = 16  # iterations between two looks at how much gradients have changed


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
        self.next_check = int(CHECK_GROWTH * loop.n) + 1
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
        """Return at which points the gap is at most tol |F(x)|, or tol times a millionth of its usual size."""
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
        """Improve the bound at the answer of a run, the last point that the oracle has evaluated."""
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
