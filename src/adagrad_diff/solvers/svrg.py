"""Proximal gradient steps with minibatches: SVRG, with the metric of any rule.

An iteration is an epoch. It begins at the last full gradient, makes steps along estimates of the
gradient, and ends with the value and the gradient of all samples. The number of steps is random.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._threads import over_rows, thread_count
from ..linalg.stored import Dense
from ..losses import LinearModel, Loss, Minibatch, Squared
from ..losses.minibatch import STEPS_MADE, Estimates
from ..polishing.quadratic_terms import terms_of
from ..rules import AdaGradDiff, Rule
from .problem import Problem, double
from .proximal_gradient import Iterate, ProximalGradient

# `make bench ONLY=stochastic.defaults` measures what the warm-up brings at 1e6 x 100. It was ahead,
# or even on raw columns, from 1e5 x 50 on. Smaller problems are polished in less time than some
# epochs take.
WARM_UP_ENTRIES, WARM_UP_SAMPLES, WARM_UP_SAMPLES_PER_FEATURE = 5_000_000, 50_000, 100
WARM_UP_EPOCHS = 16  # at most: about 24 passes over the data
WARM_UP_CHECKS = range(6, WARM_UP_EPOCHS, 2)  # epochs after which the duality gap is evaluated
BATCHES_PER_PASS, MIN_BATCH = 2000, 32  # more and smaller batches cost more than they bring


class SVRG(ProximalGradient):
    """`ProximalGradient` for a `Minibatch`, which says how gradients are estimated."""

    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        s = super().init(problem, x)
        return s._replace(memory=s.memory | {STEPS_MADE: np.zeros(x.shape[1:])})

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        loss: Any = problem.loss
        steps = s.memory[STEPS_MADE]
        first = int(np.max(steps))
        count = loss.length(first)  # steps of this epoch, the last of which ends at a full gradient
        memory = {name: value for name, value in s.memory.items() if name != STEPS_MADE}
        inner = s._replace(n=steps.astype(np.int64), memory=memory)
        if count > 1:
            inner = self._epoch(problem, inner, first, count - 1)
        new = super().step(problem, inner)
        memory = new.memory | {STEPS_MADE: steps + count}
        passes = s.passes + 1.0 + loss.size / loss.samples * (count - 1)
        return new._replace(n=s.n + 1, memory=memory, passes=passes)

    def _epoch(self, problem: Problem, s: Iterate, first: int, count: int) -> Iterate:
        """Return the iterate after so many steps with estimates."""
        loss: Any = problem.loss
        shaped = problem.layout.shaped
        estimates = Estimates(loss, shaped(s.x))
        if loss.reduce == "svrg":
            estimates.snapshot(shaped(s.x), shaped(s.g), problem.oracle_at(s.x)[0].r)
        terms = _separable_terms(self.rule, problem)
        if terms is not None:
            return self._compiled_epoch(problem, s, first, count, estimates, terms)
        n, x, g, memory = s.n, s.x, s.g, s.memory
        for k in range(1, count + 1):
            n = n + 1
            memory, point, step = self.rule.update(memory, n, double(x), double(g))
            x, g = problem.prox(point.astype(problem.dtype, copy=False), step), np.empty_like(g)
            estimates(first + k, shaped(x), shaped(g))
        return s._replace(n=n, x=x, g=g, memory=memory)

    def _compiled_epoch(
        self, problem: Problem, s: Iterate, first: int, count: int, estimates: Estimates, terms: Any
    ) -> Iterate:
        """Do the same for `AdaGradDiff` and a separable penalty, trajectory by trajectory.

        The compiled loop adds a gradient to the total when it is known, and not when it is used:
        so g is added before it, and afterwards the last estimate is the previous gradient.
        """
        loss: Any = problem.loss
        model, rule = loss.loss, self.rule
        samples = (model.b, model.weight, model.theta, int(model.intercept), model.center, model.l2)
        kernel, width = loss.rows.inner_loop(model.scalar), problem.trajectories or 1
        total = s.memory["total"] + (double(s.g) - s.memory["previous"]) ** 2
        arrays = (s.x, s.g, total, estimates.base, estimates.held, estimates.y)
        columns = [np.array(a.reshape(len(a), -1).T, order="C") for a in arrays]
        etas = np.broadcast_to(np.asarray(rule.eta, np.float64), (width,)).tolist()
        scale = rule.scales().astype(problem.dtype)

        def some(_: int, low: int, high: int) -> None:
            batches = loss.seed, first, loss.order, np.empty(loss.size, np.int64)
            for k in range(low, high):
                x, v, total, *points = (array[k] for array in columns)
                metric = etas[k], rule.eps, scale
                run = x, v, total, tuple(points), metric, terms, count
                kernel(loss.rows.entries, samples, batches, *run)

        work = model.A.size / loss.samples * loss.size * count * width
        over_rows(some, width, min(thread_count(work), width))
        x, g, total = (np.ascontiguousarray(a.T).reshape(s.x.shape) for a in columns[:3])
        return s._replace(n=s.n + count, x=x, g=g, memory={"previous": double(g), "total": total})


def _separable_terms(rule: Rule, problem: Problem) -> tuple[np.ndarray, ...] | None:
    """Return the penalty as the compiled epoch needs it; None where that does not apply."""
    loss: Any = problem.loss
    model = loss.loss
    known = type(rule) is AdaGradDiff and not callable(rule.eta) and rule.metric(0)[0] is None
    if not known or loss.reduce != "svrg" or model.scalar is None or len(problem.shape) > 1:
        return None
    found = terms_of(problem.penalty, model.A.shape[1], 0.0)
    if isinstance(found, str) or found.labels is not None:
        return None
    terms = found.extended(int(model.intercept))
    return terms.l1, terms.l2, terms.lower, terms.upper


def warm_up_loss(loss: Loss) -> Minibatch | None:
    """Return the loss with minibatches if they pay: smooth, with many dense samples in memory."""
    # One Newton step solves least squares, and an array in Fortran order would be copied.
    if not isinstance(loss, LinearModel) or loss.smoothness is None or isinstance(loss, Squared):
        return None
    if not isinstance(loss.A, Dense) or not loss.A.array.flags.c_contiguous:
        return None
    samples, features = loss.A.shape
    enough = max(WARM_UP_SAMPLES, WARM_UP_SAMPLES_PER_FEATURE * features)
    if loss.A.size < WARM_UP_ENTRIES or samples < enough:
        return None
    return Minibatch(loss, max(MIN_BATCH, samples // BATCHES_PER_PASS))
