"""Algorithm 1 of the paper: proximal (sub)gradient steps in the metric of a step-size rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf, nan, sqrt
from typing import Any, NamedTuple, Self

import numpy as np

from .._check import shown
from .problem import Problem, double


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
    evaluations: Any = 1  # of the loss so far
    passes: float = 1.0  # over the data so far: one for each gradient
    stage_ends: bool = False  # whether it is a good moment to evaluate the duality gap
    gain: float = inf  # how much the objective has improved lately; inf if that is not known

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

    answers_best = False  # whether the answer is the best iterate, not the last one

    def __init__(self, rule: Any):
        self.rule = rule

    @abstractmethod
    def prepared(self, problem: Problem) -> Self:
        """Return this solver for a problem, or raise if it does not fit."""

    @abstractmethod
    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        """Return the iterate n = 0."""

    @abstractmethod
    def step(self, problem: Problem, s: Iterate) -> Iterate:
        """Return the iterate n + 1."""

    @property
    def name(self) -> str:
        """What results and messages call it."""
        return type(self.rule).__name__

    def select(self, columns: np.ndarray) -> Self:
        """Return the same solver for some of the trajectories."""
        return type(self)(self.rule.select(columns))


class ProximalGradient(Solver):
    r"""Iterate :math:`x^{n+1} = \text{prox}^{W_n}_{\eta\varphi}(x^n - \eta W_n^{-1} g^n)`.

    The rule chooses the metric: with `AdaGradDiff` this is Algorithm 1 of the paper, whose line
    numbers stand in the comments.
    """

    def prepared(self, problem: Problem) -> Self:
        rule = self.rule.prepared(problem.shape, problem.trajectories, problem.loss.intercept)
        problem.penalty.check_metric(*rule.metric(problem.penalized_size))
        return type(self)(rule)

    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        f, g = problem.evaluate(x)  # line 4: g^1
        memory = self.rule.init(double(x), double(g))  # line 2: g^0 = 0
        zero = problem.no_iterations
        return Iterate(zero, x, f, g, problem.phi(x), memory, evaluations=zero + 1)

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        n, x, g = s.n + 1, double(s.x), double(s.g)
        # Lines 5, 6 and the gradient step of line 7: point = x - step * g, step = eta / w^n.
        answer = self.rule.update(s.memory, n, x, g)
        if s.step is None:
            _check_answer(self.name, answer, x)
        memory, point, step = answer
        if point.dtype is not problem.dtype:
            point = point.astype(problem.dtype)
        x_next = problem.prox(point, step)  # line 7: x^{n+1}
        f_next, g_next = problem.evaluate(x_next)  # line 4 of the next iteration
        phi, counts = problem.phi(x_next), (s.evaluations + 1, s.passes + 1.0)
        return Iterate(n, x_next, f_next, g_next, phi, memory, point, step, *counts)


class Averaging(ProximalGradient):
    """Methods that take gradients at averages of proximal points: UniXGrad, UniAdaGrad, AC-FGM."""

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        n, x = s.n + 1, double(s.x)
        known = s.memory | {"loss": s.f} if "loss" in s.memory else s.memory
        memory, point, step = self.rule.update(known, n, x, double(s.g))
        z = double(problem.prox(point.astype(problem.dtype), step))
        memory, mixed = self.rule.mix(memory, n, x, z)
        x = mixed.astype(problem.dtype)
        f, g = problem.evaluate(x)
        step = np.full(np.shape(step), nan)  # no subgradient is known at an average
        counts = s.evaluations + 1, s.passes + 1.0
        return Iterate(n, x, f, g, problem.phi(x), memory, point, step, *counts)


def _check_answer(name: str, answer: Any, x: np.ndarray) -> None:
    """Raise if the first update of a run does not return what it should."""
    if not (isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[0], dict)):
        raise TypeError(
            f"The method update of {name} must return memory, point and step; the memory is a dict "
            f"of arrays. Got {shown(answer)} instead."
        )
    if np.shape(answer[1]) != x.shape:
        raise ValueError(
            f"The method update of {name} must return a point of shape {x.shape}. Got shape "
            f"{np.shape(answer[1])} instead."
        )
