"""`partial_fit`: AdaGrad-Diff on a stream, where each sample comes once and there is no full gradient."""

from __future__ import annotations

from copy import copy
from math import ceil
from typing import Any

import numpy as np

from ..linalg.source import CONSTANT_PART, Moments
from ..losses import LinearModel, Minibatch
from ..losses.base import Coordinates
from ..losses.minibatch import Estimates
from ..penalties import Penalty
from ..rules import AdaGradDiff
from ..solvers.problem import Layout, Problem, double

BATCH = 32  # default number of samples of a step
ETA = 0.1  # default step size, in units of the spread of the targets and the sizes of the columns
FORGET = 2 / 3  # exponent of a = n^(-2/3), the weight of a new batch: the rate of STORM's theory


class Stream:
    r"""One problem of a model that is fitted piece by piece, with directions by the recursion STORM.

    .. math:: v_n = g_B(x_n) + (1 - a_n) (v_{n-1} - g_B(x_{n-1})), \qquad a_n = n^{-2/3}

    Both gradients are of the batch that has just arrived, so differences of v show how the gradient changes, and not the
    noise. This fails for a nonsmooth loss. For most samples both gradients are the same, for a few they differ by a jump,
    and v would accumulate old jumps. There v is the gradient of the batch (a = 1).

    Columns are centered and scaled by their moments so far, and steps are measured in the spread of all targets so far.
    A single sample has no spread: it makes no step, unless `eta` is a number.

    Reference: Cutkosky, Orabona: Momentum-Based Variance Reduction in Non-Convex SGD.
    """

    def __init__(self, x: np.ndarray, loss: LinearModel, penalty: Penalty):
        self.x, self.x_prev, self.v = x.copy(), x.copy(), np.zeros_like(x)
        self.n, self.samples, self.unit = 0, 0.0, 0.0
        self.moments = Moments(*np.zeros((3, 1)))  # of the columns
        self.mean, self.variance = 0.0, 0.0  # of the targets
        self.memory: dict[str, np.ndarray] = {}  # of the rule
        self.settings = self.settings_of(loss, penalty)

    @staticmethod
    def settings_of(loss: LinearModel, penalty: Penalty) -> tuple[Any, ...]:
        """Return what direction and memory depend on."""
        return type(loss), loss.theta, loss.l2, loss.shape, penalty.accepts == "diagonal"

    def after(
        self, loss: LinearModel, penalty: Penalty, eta: Any, size: int | None, weight: float
    ) -> Stream:
        """Return the stream after one pass over these samples, in batches.

        `weight` is their total weight.
        """
        after = copy(self)
        after._measure(loss, weight)
        step = after.unit * ETA if isinstance(eta, str) else eta
        if step == 0.0:
            return after
        scale, _ = after.moments.scale(loss.intercept)
        own, columns = penalty.accepts == "diagonal", self.x.size // len(self.x)
        rule = AdaGradDiff(
            step, scale=np.repeat(scale, columns) if own else None, blocks=None if own else "all"
        )
        if loss.intercept:
            loss.center = after.moments.mean.astype(loss.dtype)
        after._go(loss, penalty, rule, size)
        return after

    def _measure(self, loss: LinearModel, weight: float) -> None:
        """Update the moments of the columns and of the targets with these samples."""
        new = loss.A.moments(loss.weight)
        assert new is not None  # known for rows in memory
        self.samples += weight
        share = weight / self.samples
        self.moments = Moments(
            *(
                share * here + (1.0 - share) * past
                for here, past in zip(new[:3], self.moments[:3], strict=True)
            )
        )
        self.unit = self._spread(loss, share) if loss.predicts_b else 1.0

    def _spread(self, loss: LinearModel, share: float) -> float:
        """Return the spread of all targets so far, zero if they are all the same; `share` is the part of these."""
        b = loss.b.astype(np.float64)
        mean = float(np.average(b, weights=loss.weight))
        variance, apart = float(np.average((b - mean) ** 2, weights=loss.weight)), mean - self.mean
        self.variance = share * variance + (1.0 - share) * (self.variance + share * apart**2)
        self.mean += share * apart
        spread = float(np.sqrt(self.variance if loss.intercept else self.variance + self.mean**2))
        return spread if spread > CONSTANT_PART * abs(self.mean) else 0.0

    def _go(self, loss: LinearModel, penalty: Penalty, rule: AdaGradDiff, size: int | None) -> None:
        coordinates = Coordinates(loss, center=loss.center if loss.intercept else None)
        x, x_prev, v = coordinates.forward(self.x), coordinates.forward(self.x_prev), self.v
        samples = loss.A.shape[0]
        count = max(1, samples // (size or BATCH))
        batches = Estimates(Minibatch(loss, ceil(samples / count), reduce=None), x)
        order = np.random.default_rng(self.n).permutation(samples)
        within_batch = np.arange(batches.loss.size)
        metric = rule.prepared(x.shape, None, loss.intercept)
        layout, memory = Layout(x.shape), self.memory
        problem = Problem(loss, penalty, layout, x.dtype, None)
        smooth = loss.smoothness is not None or loss.differentiable
        for k in range(count):
            rows = np.take(order, k * samples // count + within_batch, mode="wrap")
            self.n += 1
            keep = 1.0 - self.n**-FORGET if smooth else 0.0  # 1 - a
            r = batches.residuals(rows, x) - keep * batches.residuals(rows, x_prev)
            v = keep * v + batches.gradient(rows, r, x - keep * x_prev)
            flat, direction = double(layout.flat(x)), double(layout.flat(v))
            memory, point, step = metric.update(
                memory or metric.init(flat, direction), self.n, flat, direction
            )
            x_prev = x
            x = layout.shaped(problem.prox(point.astype(x.dtype, copy=False), step))
        self.memory = memory
        self.x, self.x_prev, self.v = coordinates.back(x), coordinates.back(x_prev), v
