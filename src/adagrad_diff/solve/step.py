"""One step of Algorithm 1, from x and a gradient to the next point: the metric's step, then the prox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..losses import Loss
from ..penalties import Penalty
from ..rules import Memory, Rule, View
from .state import State


class Step:
    """x^{n+1} = prox(x^n - eta W_n^{-1} g^n), with the memory that it takes: `now` says where x^n and g^n are."""

    def __init__(self, loss: Loss, penalty: Penalty, rule: Rule, state: State):
        self.penalty, self.rule, self.state = penalty, rule, state
        self.flat: Callable[[np.ndarray], np.ndarray] = state.flat if state.x.ndim > 1 else lambda array: array
        self.now: View = rule.view(state.x, state.batched, loss.intercept)
        state.step = np.empty_like(self.flat(state.x))
        self.own_move = type(rule).move is not Rule.move
        state.pull = np.empty_like(state.step) if self.own_move and not rule.along_gradient else None
        if self.own_move:  # so that what such a rule does not write is seen
            state.step.fill(np.nan)
        self.part = penalised(loss, state)
        size = len(self.part(state.x))
        penalty.check_size(size)
        penalty.check_metric(*self.now.restricted(size))
        if state.batched and (found := np.shape(penalty.value(self.part(state.x)))) != state.f.shape:
            raise ValueError(
                f"{type(penalty).__name__}.value must return one number per trajectory, shape {state.f.shape}, for x of shape "
                f"{self.part(state.x).shape}. Got shape {found} instead."
            )
        self._prox_step = self.part(state.step.reshape(state.x.shape))
        if penalty.accepts == "scalar":
            self._prox_step = self._prox_step[:1]  # one step for all coordinates
        self._move: Callable[..., Any] = rule.move

    def buffer(self) -> np.ndarray:
        """Memory for a point."""
        x = np.empty_like(self.state.x)
        if self.own_move:
            x.fill(np.nan)
        return x

    def __call__(self, memory: Memory, x_next: np.ndarray) -> np.ndarray:
        """Write x^{n+1}; returns the part of it that the penalty sees."""
        now, penalty = self.now, self.penalty
        now.point, now.prox = self.flat(x_next), True
        self.rule.schedule(now)
        if self._move(memory, now) is not None:  # x^n - eta W_n^{-1} g^n
            name = type(self.rule).__name__
            raise TypeError(f"The method move of {name} must write now.step and now.point, and return nothing.")
        z = self.part(x_next)
        if self.state.pull is not None:
            self.state.pulled(now.x, now.point)
        if np.all(now.prox):
            penalty.apply(z, self._prox_step, out=z)  # x^{n+1}
        elif np.any(now.prox):  # some trajectories only look
            looks = z[:, ~now.prox]
            penalty.apply(z, self._prox_step, out=z)
            z[:, ~now.prox] = looks
        return z


def penalised(loss: Loss, state: State) -> Callable[[np.ndarray], np.ndarray]:
    """The part of x that the penalty sees: all but the intercept, as one axis of coordinates."""
    if loss.intercept:
        return lambda x: state.flat(x[:-1])
    return (lambda x: x) if state.x.ndim == 1 + state.batched else state.flat
