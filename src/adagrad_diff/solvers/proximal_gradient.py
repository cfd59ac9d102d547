"""Algorithm 1 of the paper: proximal (sub)gradient steps in the metric of a step-size rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import inf, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._check import shown
from ..rules import Rule
from .fingerprint import check_values
from .problem import Problem

if TYPE_CHECKING:
    from .state import State

DOUBLE = np.dtype(np.float64)


class Iterate(NamedTuple):
    """Where a solver stands after n iterations. It is never modified: each step makes a new one.

    If there are several trajectories, every array ends in their axis, and numbers are arrays.
    """

    n: Any  # iterations done
    x: np.ndarray  # x^{n+1}, shape (coordinates,) or (coordinates, trajectories)
    f: Any  # the loss at x
    g: np.ndarray  # its (sub)gradient at x
    phi: Any  # the penalty at x
    memory: dict[str, Any]  # what the rule, or the solver, remembers
    # x = prox(point) with this step. The step is None at the start, and NaN if no prox led to x.
    point: Any = None
    step: Any = None

    @property
    def fun(self) -> Any:
        """The objective at x."""
        return self.f + self.phi

    def subgradient_norm(self, scale: Any = 1.0) -> Any:
        """Return ||scale * u|| of a subgradient u of F at x; NaN if no prox led to x.

        The prox leaves one of phi: (point - x) / step.
        """
        if self.step is None:
            return np.full(np.shape(self.f), nan)[()]
        u = double((self.point - self.x) / self.step + self.g)
        u = u * scale if np.ndim(scale) else u
        return sqrt(np.vdot(u, u)) if u.ndim == 1 else np.sqrt(np.einsum("ik,ik->k", u, u))

    def mean_step(self) -> Any:
        """Return the mean over coordinates of the step that led to x; NaN at the start."""
        if self.step is None:
            return np.full(np.shape(self.f), nan)[()]
        if np.ndim(self.step) < self.x.ndim:  # all coordinates share a step
            return self.step
        return np.add.reduce(self.step) / len(self.step)


class Solver(ABC):
    """An iterative method: what its first iterate is, and how one leads to the next.

    A solver is free of stopping, history, averages and files, which belong to `loop`. Overflows are
    ignored while it works: the loop checks the values that come out.
    """

    rule: Rule
    name: str  # what results and messages call it
    trajectories: int | None = None  # the number of its step sizes; None if trajectories share one
    answers_best = False  # whether it is `Auto`: its answer is the best iterate, not the last one

    @abstractmethod
    def prepared(self, problem: Problem) -> Solver:
        """Return this solver for a problem, or raise if it does not fit."""

    @abstractmethod
    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        """Return the iterate n = 0."""

    @abstractmethod
    def step(self, problem: Problem, s: Iterate) -> Iterate:
        """Return the iterate n + 1."""

    @abstractmethod
    def memory_like(self, x: np.ndarray) -> dict[str, Any]:
        """Return a memory with the names and shapes that it has for iterates like x."""

    def resumed(self, problem: Problem, state: State) -> State:
        """Return a state to continue from; raise if it belongs to another solver or problem."""
        wanted = self.memory_like(state.iterate.x)
        if wanted.keys() != state.memory.keys():
            raise ValueError(
                f"'state' was made with another rule than {self.name}: it remembers other things."
            )
        if any(np.shape(state.memory[name]) != np.shape(array) for name, array in wanted.items()):
            raise ValueError("'state' was made with other blocks than this rule's.")
        check_values(problem, state.iterate, state.f_first, state.g_first)
        return state

    def select(self, columns: np.ndarray) -> Solver:
        """Return the same solver for some of the trajectories."""
        return self

    def passes(self, problem: Problem, s: Iterate) -> float:
        """Return the number of passes over the data so far: one for each gradient."""
        return (s.n if isinstance(s.n, int) else float(s.n.max())) + 1.0

    def evaluations(self, s: Iterate) -> Any:
        """Return the number of evaluations of the loss so far."""
        return s.n + 1

    def oracle(self, problem: Problem, s: Iterate, column: int | None) -> tuple[Any, int | None]:
        """Return the oracle of the loss at this trajectory of s, and the trajectory in the oracle."""
        return problem.oracle_at(s.x), column

    def suggests_check(self, s: Iterate) -> bool:
        """Return whether the duality gap should be evaluated after this iteration."""
        return False

    def accumulated(self, s: Iterate) -> Any:
        """Return the sums of squared gradients, or of their differences, if the solver has them."""
        return None

    def gain(self, s: Iterate) -> float:
        """Return how much the objective has improved lately; inf if the solver cannot tell."""
        return inf


@dataclass(frozen=True)
class ProximalGradient(Solver):
    r"""Iterate :math:`x^{n+1} = \text{prox}^{W_n}_{\eta\varphi}(x^n - \eta W_n^{-1} g^n)`.

    The rule chooses the metric: with `AdaGradDiff` this is Algorithm 1 of the paper, whose line
    numbers stand in the comments.
    """

    rule: Rule

    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        f, g = problem.evaluate(x)  # line 4: g^1
        memory = self.rule.init(double(x), double(g))  # line 2: g^0 = 0
        return Iterate(no_iterations(x), x, f, g, problem.phi(x), memory)

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        n, x, g = s.n + 1, double(s.x), double(s.g)
        # Lines 5, 6 and the gradient step of line 7: point = x - step * g, step = eta / w^n.
        answer = self.rule.update(s.memory, n, x, g)
        if s.step is None:
            self._check(answer, x)
        memory, point, step = answer
        if point.dtype is not problem.dtype:
            point = point.astype(problem.dtype)
        x_next = problem.prox(point, step)  # line 7: x^{n+1}
        f_next, g_next = problem.evaluate(x_next)  # line 4 of the next iteration
        return Iterate(n, x_next, f_next, g_next, problem.phi(x_next), memory, point, step)

    def _check(self, answer: Any, x: np.ndarray) -> None:
        """Raise if the first update of a run does not return what it should."""
        if not (isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[0], dict)):
            raise TypeError(
                f"The method update of {self.name} must return memory, point and step; the memory is a "
                f"dict of arrays. Got {shown(answer)} instead."
            )
        if np.shape(answer[1]) != x.shape:
            raise ValueError(
                f"The method update of {self.name} must return a point of shape {x.shape}. Got shape "
                f"{np.shape(answer[1])} instead."
            )

    def accumulated(self, s: Iterate) -> Any:
        return self.rule.accumulated(s.memory)

    # ------------------------------------------------------------------ parameters and trajectories

    @property
    def name(self) -> str:  # type: ignore[override]
        return type(self.rule).__name__

    @property
    def trajectories(self) -> int | None:  # type: ignore[override]
        return self.rule.trajectories

    def prepared(self, problem: Problem) -> ProximalGradient:
        rule = self.rule.prepared(problem.shape, problem.trajectories, problem.loss.intercept)
        problem.penalty.check_metric(*rule.metric(problem.penalized_size))
        return replace(self, rule=rule)

    def select(self, columns: np.ndarray) -> ProximalGradient:
        return replace(self, rule=self.rule.select(columns))

    def memory_like(self, x: np.ndarray) -> dict[str, Any]:
        return dict(self.rule.init(double(x), double(x)))


def double(x: np.ndarray) -> np.ndarray:
    """Return x in double precision, in which rules compute."""
    return x if x.dtype is DOUBLE else x.astype(np.float64, copy=False)


def no_iterations(x: np.ndarray) -> Any:
    """Return n = 0, for each trajectory if there are several."""
    return 0 if x.ndim == 1 else np.zeros(x.shape[1], np.int64)
