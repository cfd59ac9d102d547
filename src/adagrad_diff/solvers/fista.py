"""FISTA with backtracking and restart. There is no step size."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..rules.ada_pg import first_step, second_step
from .problem import Problem, double
from .proximal_gradient import Iterate, Solver

TO_STEP, TO_LOOK, TO_BEGIN = 0.0, 1.0, 2.0  # what the next iteration of a trajectory is for
MODEL_SLACK = 4096  # units in the last place of f by which the quadratic model may be missed


class FISTASolver(Solver):
    """The method that the rule `FISTA` stands for; see there for its formulas."""

    def prepared(self, problem: Problem) -> Self:
        problem.penalty.check_metric(np.zeros(problem.penalized_size, np.int64), True)
        return self

    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        f, g = problem.evaluate(x)
        y, g_y, ones = double(x), double(g), np.ones(x.shape[1:])
        memory = {"y": y, "g": g_y, "f": f * ones, "step": first_step(y, g_y) * ones}
        memory |= {"t": ones, "task": TO_BEGIN * ones}
        zero = problem.no_iterations
        return Iterate(zero, x, f, g, problem.phi(x), memory, evaluations=zero + 1)

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        y, g_y, f_y, step, t = (s.memory[name] for name in ("y", "g", "f", "step", "t"))
        looks, begins = s.memory["task"] == TO_LOOK, s.memory["task"] == TO_BEGIN
        point = np.where(looks, y, y - step * g_y).astype(problem.dtype)
        trial = np.where(looks, point, problem.prox(point, step))
        f, g = problem.evaluate(trial)
        x_new, g_new = double(trial), double(g)

        # Accept a step if the quadratic model bounds f there.
        move = x_new - y
        slope, square = np.sum(g_y * move, axis=0), np.sum(move * move, axis=0)
        slack = MODEL_SLACK * np.finfo(problem.dtype).eps * np.abs(f_y)
        bounded = f <= f_y + slope + square / (2.0 * step) + slack
        moves = begins | (~looks & (bounded | (square == 0)))  # no step is shorter than none

        # Momentum, unless it leads uphill.
        restart = np.sum(move * (x_new - s.x), axis=0) < 0
        t_new = np.where(restart, 1.0, (1.0 + np.sqrt(1.0 + 4.0 * t**2)) / 2.0)
        momentum = np.where(restart, 0.0, (t - 1.0) / t_new)
        y_new = x_new + momentum * (x_new - s.x)

        # The first step is followed by FISTA proper, with a step from the local curvature.
        changed = np.sum((g_new - s.g) ** 2, axis=0)
        begun = second_step(step, np.sum((x_new - s.x) ** 2, axis=0), changed)
        momentum, t_new = np.where(begins, 0.0, momentum), np.where(begins, 1.0, t_new)
        y_new = np.where(begins, x_new, y_new)

        # Restart at x if f is not defined at y.
        lost = looks & ~np.isfinite(f + np.sum(g_new**2, axis=0))
        known = (looks & ~lost) | (moves & (momentum == 0))  # the gradient at the next y is known
        memory = {
            "y": np.where(moves, y_new, np.where(lost, s.x, y)),
            "g": np.where(known, g_new, np.where(lost, s.g, g_y)),
            "f": np.where(known, f, np.where(lost, s.f, f_y)),
            "t": np.where(moves, t_new, np.where(lost, 1.0, t)),
            "task": np.where(moves & ~known, TO_LOOK, TO_STEP),
            "step": np.where(begins, begun, np.where(moves | looks, step, step / 2.0)),
        }
        counts = s.evaluations + 1, s.passes + 1.0
        if np.all(moves):
            return Iterate(s.n + 1, trial, f, g, problem.phi(trial), memory, point, step, *counts)
        phi = np.where(moves, problem.phi(trial), s.phi)[()]
        x, f, g = np.where(moves, trial, s.x), np.where(moves, f, s.f)[()], np.where(moves, g, s.g)
        # That x stands still says nothing about a solution: there is no subgradient until it moves.
        step = np.where(moves, step, np.nan)
        return Iterate(s.n + 1, x, f, g, phi, memory, point, step, *counts)
