"""Methods that take gradients at averages of proximal points: UniXGrad, UniAdaGrad and AC-FGM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..rules.base import AveragingRule
from .problem import Problem
from .proximal_gradient import Iterate, ProximalGradient, double


@dataclass(frozen=True)
class Averaging(ProximalGradient):
    """`ProximalGradient` for an `AveragingRule`, which mixes iterates and proximal points."""

    rule: AveragingRule

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        n, x = s.n + 1, double(s.x)
        known = s.memory | {"loss": s.f} if "loss" in s.memory else s.memory
        memory, point, step = self.rule.update(known, n, x, double(s.g))
        z = double(problem.prox(point.astype(problem.dtype), step))
        memory, mixed = self.rule.mix(memory, n, x, z)
        x = mixed.astype(problem.dtype)
        f, g = problem.evaluate(x)
        # No subgradient is known at an average: a step of NaN says so.
        return Iterate(n, x, f, g, problem.phi(x), memory, point, np.full(np.shape(step), np.nan))
