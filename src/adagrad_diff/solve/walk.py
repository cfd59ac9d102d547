"""With minibatches: the steps with estimated gradients that lead from one full gradient to the step before the next one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._threads import over_rows, thread_count
from ..finishing.manifold import pieces
from ..losses import Minibatch
from ..losses.estimates import Estimates
from ..losses.minibatch import STEPS_MADE
from ..rules import AdaGradDiff
from .memory import Memory
from .step import Step


class Walk:
    """Goes from the state's x, whose gradient is that of all samples, as far as the round is long, less its last step.

    The state itself stays as it is until `commit`: a walk that is interrupted, or leads nowhere, was never made.
    """

    def __init__(self, loss: Minibatch, step: Step):
        self.loss, self.step, self.state = loss, step, step.state
        self.x, self.g, self._x_next, self._g_next = (step.buffer() for _ in range(4))
        self._arrays = {name: array.copy() for name, array in self.state.memory.items()}
        self.memory, self.estimates = Memory(self._arrays), Estimates(loss, self.state.x)
        self._terms = straight_terms(loss, step)
        if loss.reduce == "svrg":
            self.state.oracle(
                self.state.x, out=self._g_next
            )  # its residuals are part of the snapshot

    @property
    def steps(self) -> Any:
        """Made so far, and the next one: what rules count."""
        count = self.state.memory[STEPS_MADE]
        return count.astype(np.int64) + 1 if count.ndim else int(count) + 1

    def __call__(self) -> Memory:
        """Make the steps: `now` is then where the last step of the round begins, and so is the memory that is returned."""
        state, now, flat, loss = self.state, self.step.now, self.step.flat, self.loss
        for name, array in state.memory.items():
            np.copyto(self._arrays[name], array)
        np.copyto(self.x, state.x)
        np.copyto(self.g, state.g)
        first = int(np.max(state.memory[STEPS_MADE]))
        self._count = loss.length(first)
        if loss.reduce == "svrg" and self._count > 1:
            self.estimates.snapshot(state.x, state.g, state.oracle.r)
        if self._terms is not None and self._count > 1:
            self._leap(first)
        else:
            self._go(first)
        now.n = self.steps + (self._count - 1)
        now.x, now.g = flat(self.x), flat(self.g)
        return self.memory

    def _go(self, first: int) -> None:
        """Step by step, with any rule and penalty."""
        now, flat = self.step.now, self.step.flat
        for k in range(1, self._count):
            now.n, now.x, now.g = self.steps + (k - 1), flat(self.x), flat(self.g)
            self.step(self.memory, self._x_next)
            self.estimates(first + k, self._x_next, self.x, self.g, self._g_next)
            self.x, self._x_next = self._x_next, self.x
            self.g, self._g_next = self._g_next, self.g
            now.n, now.x, now.g = self.steps + k, flat(self.x), flat(self.g)
            now.x_prev, now.g_prev = flat(self._x_next), flat(self._g_next)
            self.step.rule.add_gradient(self.memory, now)

    def _leap(self, first: int) -> None:
        """All steps in one call, trajectory by trajectory."""
        loss, model, now, rule = self.loss, self.loss.loss, self.step.now, self.step.rule
        samples = (model.b, model.weight, model.theta, int(model.intercept), model.center, model.l2)
        kernel, count, snapshot = loss.rows.walk(model.scalar), now.eta.size, self.estimates
        arrays = (self.x, self.g, self._arrays["total"], snapshot.base, snapshot.held, snapshot.y)
        columns = [np.ascontiguousarray(array.reshape(len(array), -1).T) for array in arrays]

        def some(_: int, lo: int, hi: int) -> None:
            rows = np.empty(loss.size, np.int64)
            for k in range(lo, hi):
                x, v, total, base, held, y = (array[k] for array in columns)
                metric, batches = (
                    (float(now.eta[k]), rule.eps, now.scale),
                    (loss.seed, first, loss.order, rows),
                )
                points = (base, held, y)
                kernel(
                    loss.rows.entries,
                    samples,
                    batches,
                    x,
                    v,
                    total,
                    points,
                    metric,
                    self._terms,
                    self._count - 1,
                )

        work = model.A.size / loss.samples * loss.size * self._count * count
        over_rows(some, count, min(thread_count(work), count))
        for array, rows in zip(arrays[:3], columns, strict=False):
            array.reshape(len(array), -1)[...] = rows.T

    def commit(self) -> None:
        """The round is complete: what was learned on the way is the state's, and the last step began where the walk ended."""
        state = self.state
        for name, array in state.memory.items():
            np.copyto(array, self._arrays[name])
        state.memory[STEPS_MADE] += self._count
        np.copyto(state.x_prev, self.x)
        np.copyto(state.g_prev, self.g)


def straight_terms(loss: Minibatch, step: Step) -> tuple[np.ndarray, ...] | None:
    """What the compiled walk needs to know of the penalty; None where it does not apply."""
    rule, model = step.rule, loss.loss
    known = isinstance(rule, AdaGradDiff) and not callable(rule.eta) and step.now.labels is None
    if (
        not known
        or loss.reduce == "storm"
        or model.scalar is None
        or step.state.x.ndim > 1 + step.state.batched
    ):
        return None
    terms = pieces(step.penalty, model.A.shape[1], int(model.intercept), 0.0)
    if isinstance(terms, str) or terms.labels is not None:
        return None
    return terms.l1, terms.l2, terms.lower, terms.upper
