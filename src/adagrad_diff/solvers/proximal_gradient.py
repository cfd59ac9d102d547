"""Algorithm 1 of the paper: proximal (sub)gradient steps in the metric of a step-size rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from .._check import shown
from ..rules import Rule
from .problem import Problem

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
    point: Any = None  # what the prox was applied to that led to x,
    step: Any = None  # and its step: None at the start, NaN if x has not moved

    def subgradient_norm(self) -> Any:
        """Return ||u|| of a subgradient u of F at x: the prox leaves one of phi. NaN if x has not moved."""
        if self.step is None:
            return np.full(np.shape(self.f), np.nan)[()]
        u = double((self.point - self.x) / self.step + self.g)
        return sqrt(np.vdot(u, u)) if u.ndim == 1 else np.sqrt(np.einsum("ik,ik->k", u, u))


class Solver(ABC):
    """An iterative method: what its first iterate is, and how one leads to the next.

    A solver is free of stopping, history, averages and files, which belong to `loop`. Overflows are
    ignored while it works: the loop looks at the values that come out.
    """

    rule: Rule
    name: str  # what results and messages call it
    trajectories: int | None = None  # the number of its step sizes; None if trajectories share one
    averages = False  # whether its answer is an average of its own; see `Rule.average`

    @abstractmethod
    def prepared(self, problem: Problem) -> Solver:
        """Return this solver for a problem, or raise if it does not fit."""

    @abstractmethod
    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        """Return the iterate n = 0."""

    @abstractmethod
    def step(self, problem: Problem, s: Iterate) -> Iterate:
        """Return the iterate n + 1."""

    def select(self, columns: np.ndarray) -> Solver:
        """Return the same solver for some of the trajectories."""
        return self

    def memory_like(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return a memory with the names and shapes that it has for iterates like x."""
        raise NotImplementedError

    def average(self, s: Iterate) -> Any:
        """Return the solver's own average of the iterates. Only if `averages` is set."""
        raise NotImplementedError

    def passes(self, problem: Problem, s: Iterate) -> float:
        """Return the number of passes over the data so far: one for each gradient."""
        return (s.n if isinstance(s.n, int) else float(s.n.max())) + 1.0


@dataclass(frozen=True)
class ProximalGradient(Solver):
    r"""Iterate :math:`x^{n+1} = \text{prox}^{W_n}_{\eta\varphi}(x^n - \eta W_n^{-1} g^n)`.

    The rule chooses the metric: with `AdaGradDiff` this is Algorithm 1 of the paper, whose line
    numbers stand in the comments.
    """

    rule: Rule

    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        f, g = problem.evaluate(x)  # line 4: g^1
        memory = self.rule.init(double(x), double(g))  # lines 1 and 2
        return Iterate(no_iterations(x), x, f, g, problem.phi(x), memory)

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        n, x, g = s.n + 1, double(s.x), double(s.g)
        answer = self.rule.update(s.memory, n, x, g)  # lines 5 and 6
        if s.step is None:
            self._check(answer, x)
        memory, point, step = answer
        if point.dtype is not problem.dtype:
            point = point.astype(problem.dtype)
        x = problem.prox(point, step)  # line 7
        f, g = problem.evaluate(x)  # line 4 of the next iteration
        return Iterate(n, x, f, g, problem.phi(x), memory, point, step)

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

    # ------------------------------------------------------------------ parameters and trajectories

    @property
    def name(self) -> str:  # type: ignore[override]
        return type(self.rule).__name__

    @property
    def trajectories(self) -> int | None:  # type: ignore[override]
        return self.rule.trajectories

    @property
    def averages(self) -> bool:  # type: ignore[override]
        return self.rule.averages

    def prepared(self, problem: Problem) -> ProximalGradient:
        rule = self.rule.prepared(
            problem.shape, problem.dtype, problem.trajectories, problem.loss.intercept
        )
        problem.penalty.check_metric(*rule.metric(problem.penalized_size))
        return replace(self, rule=rule)

    def select(self, columns: np.ndarray) -> ProximalGradient:
        return replace(self, rule=self.rule.select(columns))

    def memory_like(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return self.rule.init(double(x), double(x))

    def average(self, s: Iterate) -> Any:
        return self.rule.average(s.memory, s.n + 1, double(s.x))


def double(x: np.ndarray) -> np.ndarray:
    """Return x in double precision, in which rules compute."""
    return x if x.dtype is DOUBLE else x.astype(np.float64, copy=False)


def no_iterations(x: np.ndarray) -> Any:
    """Return n = 0, for each trajectory if there are several."""
    return 0 if x.ndim == 1 else np.zeros(x.shape[1], np.int64)
