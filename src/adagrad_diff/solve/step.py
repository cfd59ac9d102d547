"""One step of Algorithm 1, from x and a gradient to the next point: the metric's step, then the prox."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..losses import Loss
from ..penalties import Penalty
from .memory import Memory, View
from .race_rule import RaceRule
from .state import State


class Step:
    """x^{n+1} = prox(x^n - eta W_n^{-1} g^n), with the memory that it takes: `now` says where x^n and g^n are."""

    def __init__(self, loss: Loss, penalty: Penalty, rule: RaceRule, state: State):
        self.penalty, self.rule, self.state = penalty, rule, state
        self.flat: Callable[[np.ndarray], np.ndarray] = (
            state.flat if state.x.ndim > 1 else lambda array: array
        )
        self.now: View = rule.view(state.x, state.batched, loss.intercept)
        state.step = np.empty_like(self.flat(state.x))
        self.part = penalised(loss, state)
        size = len(self.part(state.x))
        penalty.check_size(size)
        penalty.check_metric(*self.now.restricted(size))
        if (
            state.batched
            and (found := np.shape(penalty.value(self.part(state.x)))) != state.f.shape
        ):
            raise ValueError(
                f"{type(penalty).__name__}.value must return one number per trajectory, shape {state.f.shape}, for x of shape "
                f"{self.part(state.x).shape}. Got shape {found} instead."
            )
        self._prox_step = self.part(state.step.reshape(state.x.shape))
        if penalty.accepts == "scalar":
            self._prox_step = self._prox_step[:1]  # one step for all coordinates

    def buffer(self) -> np.ndarray:
        """Memory for a point."""
        return np.empty_like(self.state.x)

    def __call__(self, memory: Memory, x_next: np.ndarray) -> np.ndarray:
        """Write x^{n+1}; returns the part of it that the penalty sees."""
        now, penalty = self.now, self.penalty
        now.point = self.flat(x_next)
        self.rule.make_step(memory, now)  # x^n - eta W_n^{-1} g^n
        z = self.part(x_next)
        penalty.apply(z, self._prox_step, out=z)  # x^{n+1}
        return z


def penalised(loss: Loss, state: State) -> Callable[[np.ndarray], np.ndarray]:
    """The part of x that the penalty sees: all but the intercept, as one axis of coordinates."""
    if loss.intercept:
        return lambda x: state.flat(x[:-1])
    return (lambda x: x) if state.x.ndim == 1 + state.batched else state.flat
